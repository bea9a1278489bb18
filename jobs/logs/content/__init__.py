"""Which files are logs, decided by what is in them."""

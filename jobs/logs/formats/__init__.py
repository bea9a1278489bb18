"""What log files are made of: compressions, archives and encodings."""

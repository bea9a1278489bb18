"""What every other room may use."""

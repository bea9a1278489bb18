"""The estimated state of one group that a real coordinator runs."""

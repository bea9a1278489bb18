"""What is known of one group that a real coordinator runs."""

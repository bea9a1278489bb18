"""What is special about groups whose members are no plain consumers."""

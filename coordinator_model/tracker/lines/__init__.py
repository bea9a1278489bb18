"""What each kind of line says about a group: one handler for each."""

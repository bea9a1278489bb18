"""What consumers read, as their FETCH requests tell it: they become numbers while the log is read."""

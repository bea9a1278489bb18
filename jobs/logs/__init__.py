"""Log files to lines, in order of time."""

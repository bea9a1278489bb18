"""What the commands print: tables, reports, answers, progress."""

"""What the tables say: reports, named questions, evidence."""

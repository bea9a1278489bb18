"""Answers from the tables: reports, named questions, evidence."""

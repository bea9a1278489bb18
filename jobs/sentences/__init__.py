"""Everything that brokers and clients say about groups, on pages: the one place that words each sentence.

What is kept of a log (jobs/logs), how a kept line is read (jobs/parsing) and what generated brokers write (jobs/generate) follow from it.
"""

"""Where evidence comes from: one module per kind of log, and what they share."""

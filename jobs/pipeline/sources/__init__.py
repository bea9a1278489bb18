"""What the queries read: Python data sources of Spark."""

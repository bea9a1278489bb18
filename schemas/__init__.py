"""The tables of the lakehouse: one module each, the only place where a schema is written. names.py needs no PySpark."""

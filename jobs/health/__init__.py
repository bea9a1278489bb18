"""What the pipeline says of itself, and whether it is well."""

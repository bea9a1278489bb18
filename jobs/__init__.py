"""The jobs: read, transform, write. Everything that touches Spark, files or a terminal."""

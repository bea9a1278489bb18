"""The pipeline, its commands and everything else that knows Spark, files or the terminal."""

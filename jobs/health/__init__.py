"""The pipeline's own health: what it records about itself, and the verdict."""

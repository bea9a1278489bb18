"""Groups to which nothing happens: what they cost is little."""

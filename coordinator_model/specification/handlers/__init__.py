"""What the coordinator does with each request and each timer."""

"""Real consumers that do what they are told, for live tests and `rebalance demo-live`."""

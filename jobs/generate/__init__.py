"""Logs of clusters that never were, by the specification and the client model: `rebalance generate`."""

"""The tables as a local web app: `rebalance dashboard`."""

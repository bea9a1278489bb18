"""The report as one HTML page, for people who have nothing else: `rebalance report --format html`."""

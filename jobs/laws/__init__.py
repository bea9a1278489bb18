"""Laws that the tables of every lakehouse keep: `rebalance check`. They hold whatever the logs were."""

"""What the offsets of a group show: records read twice, lag, partitions that nobody reads. It takes the rows that the tracker writes."""

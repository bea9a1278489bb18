"""What brokers did to groups: from the lines about them, and the findings of the groups, to the rows of the table `incidents`."""

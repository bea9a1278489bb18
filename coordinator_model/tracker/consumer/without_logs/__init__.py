"""What shows a group of the consumer protocol where no log of its coordinator can be read: stored records, and polls."""

"""The other side of the protocol: how consumers of each release behave."""

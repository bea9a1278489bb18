"""The sentences that brokers and clients log, as data."""

"""What the tracker saw, explained: small rules, one idea a module."""

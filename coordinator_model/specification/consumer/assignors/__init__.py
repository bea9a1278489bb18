"""The assignors that a broker ships: `uniform` and `range`."""

"""The request in flight, its session, and the interfaces through which other parts see it."""

"""The request in flight, its session, and interfaces for other packages."""

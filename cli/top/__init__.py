"""`sluice top`: live tables of clients and their throttle times."""

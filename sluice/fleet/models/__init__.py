"""Models of clients, and mixes of them."""

"""The statements of each KIP, and how each is checked against the observed sequences."""

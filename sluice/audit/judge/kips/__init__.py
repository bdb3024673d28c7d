"""One rule per statement of each KIP."""

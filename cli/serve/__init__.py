"""`sluice serve`: run brokers until a signal arrives."""

"""`sluice journal`."""

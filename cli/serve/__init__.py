"""`sluice serve`."""

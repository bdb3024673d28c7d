"""`sluice explore`."""

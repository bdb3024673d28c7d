"""`sluice top`."""

"""`sluice lint`."""

"""`sluice quota` and `sluice explain`."""

"""`sluice run` and `sluice scenario`."""

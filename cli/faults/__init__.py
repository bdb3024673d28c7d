"""`sluice faults`: list, add and remove fault rules."""

"""`sluice audit`: run, compare and judge."""

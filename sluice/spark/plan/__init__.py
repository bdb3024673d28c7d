"""`sluice pipeline plan`: quotas recommended from observed traffic."""

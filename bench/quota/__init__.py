"""The accuracy of quotas for real clients, and their cost."""

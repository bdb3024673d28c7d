"""The quotas of a proxy."""

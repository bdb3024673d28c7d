"""Plans of logs of real clients, recorded with and without quotas."""

"""Rules about throttle times."""

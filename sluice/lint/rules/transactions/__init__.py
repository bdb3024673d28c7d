"""Rules about transactions."""

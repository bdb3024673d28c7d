"""Rules about producers."""

"""Rules about connections."""

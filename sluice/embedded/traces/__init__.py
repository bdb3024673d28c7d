"""Traces of tests: which brokers a test used, what the test did meanwhile, and the file."""

"""Measures the broker against the limit of its runtime. Not part of the distribution."""

"""Benchmarks, not part of the distribution."""

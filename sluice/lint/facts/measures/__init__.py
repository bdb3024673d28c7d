"""Measures that facts of several domains use: distributions, bursts, waits."""

"""Traces: what happened in a test, as one HTML file that needs no network."""

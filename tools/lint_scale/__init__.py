"""Lint over simulated journals with millions of events: equality, rates and memory."""

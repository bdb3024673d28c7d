"""Handlers of the transaction APIs."""

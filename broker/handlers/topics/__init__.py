"""Handlers of the metadata and topic APIs."""

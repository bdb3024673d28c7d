"""Handlers of the group and offset APIs."""

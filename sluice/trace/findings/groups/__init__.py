"""Findings about consumers and their groups."""

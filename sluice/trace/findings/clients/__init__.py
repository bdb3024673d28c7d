"""Findings about clients and their connections."""

"""Broker configuration: properties, value types, files and listeners."""

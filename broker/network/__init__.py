"""Sockets to frames: listeners, TLS, connections, and connection limits."""

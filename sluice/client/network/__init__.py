"""Connections to brokers: states, in-flight requests, metadata updates, SASL and TLS."""

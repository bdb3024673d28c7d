"""Handlers about brokers, replicas, log directories and served API versions."""

"""Findings about brokers, leaders, transactions and fault rules."""

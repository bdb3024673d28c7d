"""SASL at a proxy: its own authentication towards upstream brokers, and what it sees of the clients'."""

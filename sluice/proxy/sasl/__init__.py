"""SASL at a proxy: its own authentication towards upstream brokers, and that of clients which passes through."""

"""Brokers in one's own process: `sluice.Broker`, `sluice.SyncBroker` and their controls."""

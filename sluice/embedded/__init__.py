"""Brokers in the test process: `sluice.Broker`, `sluice.SyncBroker` and their handles."""

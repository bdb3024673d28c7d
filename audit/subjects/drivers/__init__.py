"""Drivers: each runs a workload with one client library and reports its callbacks."""

"""Fetch requests, fetch sessions, and records from fetched batches."""

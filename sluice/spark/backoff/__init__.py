"""`sluice pipeline backoff`: failure spans and waits per client, from the journal."""

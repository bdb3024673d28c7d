"""Facts of clients, groups and topics: small counters and bounded examples, collected in one pass over the events."""

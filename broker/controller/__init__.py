"""Which brokers are alive, which of them lead partitions, and which topics exist."""

"""Traffic as quota charges, from the journal or from Kafka's request log."""

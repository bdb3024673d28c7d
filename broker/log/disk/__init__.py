"""Log segments, indexes and checkpoints in Kafka's on-disk format."""

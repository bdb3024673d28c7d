"""Log compaction, as Kafka's LogCleaner does it."""

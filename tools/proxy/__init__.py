"""Campaigns of `sluice proxy` in front of Apache Kafka: the client matrix, and kills."""

"""The request handlers, one file for each Kafka API."""

"""The request handlers: one file per Kafka API, grouped by what the API is about."""

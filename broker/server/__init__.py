"""One broker assembled from its parts, and several brokers in one process."""

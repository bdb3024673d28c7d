"""Code of both coordinators: their log, their shards, and loading."""

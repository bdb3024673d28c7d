"""Reading, appending and waiting for replicas of partitions."""

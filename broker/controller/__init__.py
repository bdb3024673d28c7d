"""The controller: liveness of brokers, partition leaders, topics and dynamic configs."""

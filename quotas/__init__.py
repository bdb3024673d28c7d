"""Client and connection quotas: limits, recorded use and throttle times, independent of messages and sockets."""

"""Consumer groups (KIP-848): ConsumerGroupHeartbeat and server-side assignment."""

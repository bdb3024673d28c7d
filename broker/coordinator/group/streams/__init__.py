"""Streams groups (KIP-1071): StreamsGroupHeartbeat, topologies, and server-side assignment of tasks."""

"""Delayed operations, by deadline and key; independent of messages, sockets and the event loop."""

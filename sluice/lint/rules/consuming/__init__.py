"""Rules about consumers: what they fetch and commit."""

"""The handlers of Streams groups (KIP-1071)."""

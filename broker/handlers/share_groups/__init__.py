"""Members and offsets of share groups (KIP-932)."""

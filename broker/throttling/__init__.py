"""Quotas on requests: throttle times, muted connections and held responses (KIP-13, KIP-219)."""

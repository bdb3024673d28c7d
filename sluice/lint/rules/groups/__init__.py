"""Rules about groups: their members and rebalances."""

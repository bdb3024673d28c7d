"""Classic groups: JoinGroup, SyncGroup, Heartbeat."""

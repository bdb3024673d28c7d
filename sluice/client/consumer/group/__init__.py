"""Consumer groups: joining, heartbeats, assignment and offset commits."""

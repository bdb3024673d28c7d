"""The metadata log: topics, configs and ACLs on disk, in KRaft's record format."""

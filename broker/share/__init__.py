"""Share groups on the leaders of partitions: records in flight, share sessions, and share fetches (KIP-932)."""

"""The client's view of the cluster."""

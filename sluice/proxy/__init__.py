"""`sluice proxy`: our own server in front of a real cluster, whose handler of every API forwards the request."""

"""Models of fleets against real clients and brokers, in real time."""

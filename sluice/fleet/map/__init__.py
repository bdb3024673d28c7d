"""The map of no return: from which settings a fleet recovers after an outage (fluid.py, grid.py)."""

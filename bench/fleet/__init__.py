"""The speed of simulated fleets: of the exact simulation, and of a sweep on Spark."""

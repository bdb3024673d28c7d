"""The vectorised simulation of a fleet (engine.py)."""

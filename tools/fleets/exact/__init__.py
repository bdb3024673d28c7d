"""The exact simulation of a fleet (run.py): real clients and the real broker in virtual time."""

"""The drivers of client libraries (driven.py)."""

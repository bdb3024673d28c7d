"""Drivers: each has one client library work, and tells what its callbacks say. Time is real, or a loop's."""

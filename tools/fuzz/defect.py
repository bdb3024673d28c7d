"""What a target raises."""


class DefectError(Exception):
    """A target did what it never should."""

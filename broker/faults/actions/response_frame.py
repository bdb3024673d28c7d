"""An answer on its way out, as the bytes that it is: what actions do to frames they do to this."""

from typing import Literal

How = Literal["fin", "rst"]


class Outgoing:
    """A response frame, size prefix and all."""

    __slots__ = ("close", "copies", "frame")

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self.copies = 1
        self.close: How | None = None  # how the connection ends behind it

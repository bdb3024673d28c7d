"""An answer on its way out, as the bytes that it is: what actions do to frames they do to this."""

from typing import Literal

CloseMethod = Literal["fin", "rst"]


class ResponseFrame:
    """A response frame, size prefix and all."""

    __slots__ = ("close", "copies", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.copies = 1
        self.close: CloseMethod | None = None  # how the connection ends behind it

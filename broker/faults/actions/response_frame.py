"""A response frame that actions may change before it is sent."""

from typing import Literal

CloseMethod = Literal["fin", "rst"]


class ResponseFrame:
    __slots__ = ("close", "copies", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.copies = 1
        self.close: CloseMethod | None = None  # how to close the connection after the frame

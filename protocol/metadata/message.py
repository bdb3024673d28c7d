"""The base class of metadata records."""

from typing import ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import Versions


class MetadataMessage(Message):
    """The content of one record. `TYPE` is its number among metadata records or control records."""

    TYPE: ClassVar[int]
    VERSIONS: ClassVar[Versions]

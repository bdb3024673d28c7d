"""What all metadata records have in common: the number that says what they are."""

from typing import ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import Versions


class MetadataMessage(Message):
    """The content of one record. `TYPE` is its number among metadata records, or among control records."""

    TYPE: ClassVar[int]
    VERSIONS: ClassVar[Versions]

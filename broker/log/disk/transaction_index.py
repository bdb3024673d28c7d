"""The aborted transactions with markers in a segment, in a file: Kafka's TransactionIndex, version 0."""

import os
from collections.abc import Sequence
from struct import Struct

from sluice.broker.log.producer_state import AbortedTransaction

from .segment_index import CorruptIndexError
from .text_files import write_atomically

_VERSION = 0
_ENTRY = Struct(">hqqqq")  # version, producer id, first offset, last offset, last stable offset


def write_transaction_index(path: str, aborted: Sequence[AbortedTransaction]) -> None:
    """Remove the file if no transaction was aborted."""
    if aborted:
        entries = (
            _ENTRY.pack(_VERSION, one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset)
            for one in aborted
        )
        write_atomically(path, b"".join(entries), sync=False)
    elif os.path.exists(path):
        os.unlink(path)


def read_transaction_index(path: str) -> list[AbortedTransaction]:
    with open(path, "rb") as file:
        data = file.read()
    if len(data) % _ENTRY.size:
        raise CorruptIndexError(f"{path}: wrong size; expected a multiple of {_ENTRY.size} bytes, got {len(data)}")
    found = []
    for number, (version, *values) in enumerate(_ENTRY.iter_unpack(data)):
        if version != _VERSION:
            raise CorruptIndexError(
                f"{path}: unsupported version at byte {number * _ENTRY.size}; expected {_VERSION}, got {version}"
            )
        found.append(AbortedTransaction(*values))
    return found

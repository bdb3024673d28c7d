"""CRC-32C, the checksum of magic 2 batches.

Importing the `crc32c` package takes tens of milliseconds, so the first checksum does it, or `preload` once the server
listens. Call it as `crc.crc32c(...)`: the import replaces that name.
"""

from collections.abc import Callable

Bytes = bytes | bytearray | memoryview


def _import_and_compute(data: Bytes) -> int:
    preload()
    return crc32c(data)


crc32c: Callable[[Bytes], int] = _import_and_compute


def preload() -> None:
    global crc32c
    from crc32c import crc32c as implementation

    crc32c = implementation

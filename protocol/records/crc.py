"""CRC-32C, the checksum of magic 2 batches.

The `crc32c` package reads its own metadata when it is imported, which takes tens of milliseconds; a broker has to
answer before that. So it is imported by the first checksum, or by `preload` once the server is listening. Callers
write `crc.crc32c(...)`: after the import that name is the C function itself.
"""

from collections.abc import Callable

Bytes = bytes | bytearray | memoryview


def _import_and_compute(data: Bytes) -> int:
    preload()
    return crc32c(data)


crc32c: Callable[[Bytes], int] = _import_and_compute


def preload() -> None:
    """Imports the C implementation, if no checksum was computed yet."""
    global crc32c
    from crc32c import crc32c as implementation

    crc32c = implementation

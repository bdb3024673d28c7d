"""Random ids, like Kafka's Uuid.randomUuid."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable


def random_uuid(random_bytes: Callable[[int], bytes]) -> bytes:
    """Return a random (version 4) id of 16 bytes, whose text never starts with '-', like an option."""
    while True:
        raw = bytearray(random_bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if not printed_uuid(raw).startswith("-"):
            return bytes(raw)


def printed_uuid(uuid: bytes | bytearray) -> str:
    return urlsafe_b64encode(uuid).decode().rstrip("=")


def uuid_from_printed(printed: str) -> bytes | None:
    try:
        raw = urlsafe_b64decode(printed + "==")
    except ValueError:
        return None
    return raw if len(raw) == 16 else None

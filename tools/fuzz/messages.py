"""Random messages from the declarations of their fields: they decode, and their values exist or are extreme."""

from collections.abc import Mapping
from random import Random
from typing import Any

from sluice.protocol.apis import API_KEYS
from sluice.protocol.message import Field, Message, fields_of
from sluice.protocol.types import ZERO_UUID
from tests.support.records import batch
from tests.support.wire import frame

_NAMES = ("t", "t", "u", "g", "h", "x", "", "__consumer_offsets", "__transaction_state", "alice", "range", "a" * 300)
# Chosen among those that the field can hold.
_NUMBERS = (0, 0, 0, 1, 1, 2, 3, 5, 100, -1, -1, -2, -3, 7, 16, 255, 1_700_000_000_000)
_BATCHES = (
    *(batch(b"value", compression=codec) for codec in range(5)),
    batch(b"v", producer_id=1, producer_epoch=0, base_sequence=0),
    batch(b"v", producer_id=0, producer_epoch=0, base_sequence=0, transactional=True),
    batch(b"v", b"w", None) + batch(b"v"),
)
_IDS = (ZERO_UUID, bytes(range(16)), bytes(15) + b"\1")
_MOST_ITEMS = 3
_DEEPEST = 4


def random_frame(random: Random, served: Mapping[int, tuple[int, int]], topic_id: bytes) -> bytes:
    """Return a frame without its size, of any API and version that is served."""
    key = random.choice([*served])
    api, version = API_KEYS[key], random.randint(*served[key])
    return frame(random_message(api.request, version, random, topic_id), version, client_id="fuzz")[4:]


def random_message(cls: type[Message], version: int, random: Random, topic_id: bytes = ZERO_UUID) -> Message:
    return _message(cls, version, random, (*_IDS, topic_id), 0)


def _message(cls: type[Message], version: int, random: Random, ids: tuple[bytes, ...], depth: int) -> Message:
    values: dict[str, Any] = {}
    for field in fields_of(cls):
        if version not in field.versions or random.random() < 0.1:
            continue
        if version in field.null and random.random() < 0.1:
            values[field.name] = None
        elif field.is_array:
            most = 0 if depth > _DEEPEST else _MOST_ITEMS
            values[field.name] = [_value(field, version, random, ids, depth) for _ in range(random.randint(0, most))]
        else:
            values[field.name] = _value(field, version, random, ids, depth)
    return cls(**values)


def _value(field: Field, version: int, random: Random, ids: tuple[bytes, ...], depth: int) -> Any:
    if field.struct is not None:
        return _message(field.struct, version, random, ids, depth + 1)
    assert field.type is not None
    match field.type.name:
        case "string":
            return random.choice(_NAMES)
        case "uuid":
            return random.choice(ids)
        case "bool":
            return random.random() < 0.5
        case "float64":
            return random.choice((0.0, 1.0, -1.0, 1e308, float("nan"), float("inf")))
        case "bytes" | "records":
            return random.choice((b"", b"\0" * 7, *_BATCHES))
        case _:
            limit = 1 << (8 * field.type.size - 1)
            number = random.choice((limit - 1, -limit) if random.random() < 0.1 else _NUMBERS)
            if number >= limit:
                return 0
            return abs(number) if field.type.name.startswith("u") else number

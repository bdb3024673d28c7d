"""The wire types, named as in Kafka's message definitions, and the declarations of fields.

A field is `name: type = default`, or `name: Annotated[type, V(...)] = default` if not every version has it:

    class HeartbeatRequest(Message):
        group_id: string = ""
        group_instance_id: Annotated[string | None, V("3+", null="3+")] = None

`bytes_` and `records_` have an underscore, because `bytes` is a builtin and `records` a frequent field name.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, NamedTuple

from msgspec import Struct

Segments = Sequence["bytes | memoryview"]

LAST_VERSION = 0x7FFF  # int16 on the wire, so "3+" ends here

# The entity that a field names (`V.entity`): Kafka's `entityType`, and partitions, which have none there.
TOPIC_NAME, TOPIC_ID, PARTITION = "topicName", "topicId", "partition"
GROUP_ID, TRANSACTIONAL_ID = "groupId", "transactionalId"

CONTROLLER = "controller"  # `V.address` of a controller's host or port


class Type(Struct, eq=False):
    """A primitive wire type. `code` is its struct format, None for types of variable length."""

    name: str
    code: str | None = None
    size: int = 0  # bytes; only for fixed-size types

    def __or__(self, _: None) -> "Type":
        return self  # `V.null` has the versions that allow null


class Range:
    """An inclusive range of versions in Kafka's notation: `3+`, `0-14`, `5` or `none`."""

    __slots__ = ("first", "last")

    def __init__(self, text: str) -> None:
        first, dash, last = text.partition("-")
        if text == "none":
            self.first, self.last = LAST_VERSION + 1, LAST_VERSION
        elif first.endswith("+"):
            self.first, self.last = int(first[:-1]), LAST_VERSION
        else:
            self.first, self.last = int(first), int(last if dash else first)

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


range_of = cache(Range)  # declarations repeat the same few ranges


class Versions:
    """The versions of a request, response or header.

    Args:
        valid: All versions that ever existed.
        flexible: The versions of KIP-482.
        latest_unstable: Whether the last version needs unstable.api.versions.enable.
        client_throttles: The response versions after which clients apply the throttle time themselves (KIP-219), as in
            Kafka's `AbstractResponse.shouldClientThrottle`.
    """

    __slots__ = ("client_throttles", "flexible", "latest_unstable", "max", "min")

    def __init__(
        self, valid: str, flexible: str, *, latest_unstable: bool = False, client_throttles: str = "none"
    ) -> None:
        versions = range_of(valid)
        self.min = versions.first
        self.max = versions.last
        self.flexible = range_of(flexible)
        self.latest_unstable = latest_unstable
        self.client_throttles = range_of(client_throttles)


class V(NamedTuple):
    """The versions and the meaning of a field.

    Args:
        versions: The versions with the field.
        null: The versions in which it may be null.
        tag: The tag (KIP-482) of a tagged field.
        compact: False if even flexible versions use the old length (the client id of a request header).
        entity: The entity that the field, or each item, names: a constant above, or a mapping from values of
            `entity_by`.
        entity_by: The field of the same struct that selects the entity.
        map_key: Whether the field is part of a list item's key in a response. Fields with an entity always are.
        selects_all: The values of a list that select all topics: `null`, `empty`, or `null, empty 0` if only in some
            versions.
        answers: The corresponding field of the request, if it has another name; several if request versions differ.
        errors: For an error code, the possible codes; lower-case names are groups (`sluice.protocol.error_codes`).
            Empty: fault rules cannot select this level.
        errors_fall_back: Whether versions without this field have its errors on their deepest level instead.
        on_error: The value in a failed item: a literal, `kept` for the item's own value, or `message` for the code's.
        address: For a broker's host or port in a response, the field of the same struct with the broker's id. For a
            controller's, CONTROLLER.
        leader: Whether the field is the id of a partition's leader, in a response with addresses of brokers.
    """

    versions: str = "0+"
    null: str = "none"
    tag: int | None = None
    compact: bool = True
    entity: str | Mapping[int, str] | None = None
    entity_by: str = ""
    map_key: bool = False
    selects_all: str = ""
    answers: str = ""
    errors: str | None = None
    errors_fall_back: bool = True
    on_error: bytes | int | str | None = "default"
    address: str = ""
    leader: bool = False


class Single:
    """The usual shape of a message, for fast codecs (`codec.single_element`).

    Each array on the path `arrays` has one element. The fields in `null` and `empty`, separated by spaces, are null or
    empty. No tagged field is set.
    """

    def __init__(self, arrays: str, *, null: str = "", empty: str = "") -> None:
        self.arrays = arrays.split(".")
        self.null = null.split()
        self.empty = empty.split()


boolean = Annotated[bool, Type("bool", "?", 1)]
int8 = Annotated[int, Type("int8", "b", 1)]
int16 = Annotated[int, Type("int16", "h", 2)]
uint16 = Annotated[int, Type("uint16", "H", 2)]
int32 = Annotated[int, Type("int32", "i", 4)]
int64 = Annotated[int, Type("int64", "q", 8)]
float64 = Annotated[float, Type("float64", "d", 8)]
# Not uuid.UUID, whose creation costs as much as a whole small request.
uuid = Annotated[bytes, Type("uuid", "16s", 16)]
string = Annotated[str, Type("string")]
bytes_ = Annotated[bytes, Type("bytes")]
# Decoded as a view of the input buffer. Encoded by reference, in one piece or several.
records_ = Annotated[bytes | memoryview | Segments, Type("records")]

# By name, as declarations use them.
WIRE_TYPES: dict[str, Type] = {
    name: alias.__metadata__[0] for name, alias in list(globals().items()) if hasattr(alias, "__metadata__")
}

ZERO_UUID = bytes(16)

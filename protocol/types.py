"""The wire types, named as in Kafka's message definitions, and what a declaration states about a field.

A field is `name: type = default`, or `name: Annotated[type, V(...)] = default` where not every version has it:

    class HeartbeatRequest(Message):
        API_KEY: ClassVar[int] = 12
        VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="4+")
        group_id: string = ""
        group_instance_id: Annotated[string | None, V("3+", null="3+")] = None

Kafka's `bytes` and `records` carry an underscore here: the bare names are a builtin and a name many fields have.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated

Segments = Sequence["bytes | memoryview"]

LAST_VERSION = 0x7FFF  # versions are int16 on the wire: "3+" ends here

# What a field names (`V.entity`): Kafka's `entityType`, and the partition, which has none there.
TOPIC_NAME, TOPIC_ID, PARTITION = "topicName", "topicId", "partition"
GROUP_ID, TRANSACTIONAL_ID = "groupId", "transactionalId"


class Type:
    """A primitive of the wire. `code` is its struct format; None for those whose length is on the wire."""

    __slots__ = ("code", "name", "size")

    def __init__(self, name: str, code: str | None = None, size: int = 0) -> None:
        self.name = name
        self.code = code
        self.size = size  # bytes; of the fixed-size ones only


class Range:
    """An inclusive range of versions, written as Kafka writes it: `3+`, `0-14`, `5`, or `none`."""

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


# Declarations repeat few ranges, many times.
_range = cache(Range)
EVERY_VERSION, NO_VERSION = _range("0+"), _range("none")


class Versions:
    """The versions of a request, response or header.

    Args:
        valid: All versions that ever existed.
        flexible: The versions of KIP-482.
        latest_unstable: A broker offers the last version only with unstable.api.versions.enable.
        client_throttles: Of a response, the versions after which a client waits out the throttle time itself (KIP-219),
            as in Kafka's `AbstractResponse.shouldClientThrottle`.
    """

    __slots__ = ("client_throttles", "flexible", "latest_unstable", "max", "min")

    def __init__(
        self, valid: str, flexible: str, *, latest_unstable: bool = False, client_throttles: str | None = None
    ) -> None:
        versions = _range(valid)
        self.min = versions.first
        self.max = versions.last
        self.flexible = _range(flexible)
        self.latest_unstable = latest_unstable
        self.client_throttles = NO_VERSION if client_throttles is None else _range(client_throttles)


class V:
    """The versions that have a field, those where it may be null, and the meaning of the field.

    Args:
        versions: The versions that have it.
        null: The versions in which it may be null.
        tag: Its tag (KIP-482), if it is a tagged field.
        compact: False: even flexible versions write its length the old way (the client id of a request header).
        entity: What it names, or what each item of it names: one of the constants above. A mapping gives the entity
            for each value of the field `entity_by`.
        entity_by: The field of the same struct that selects the entity.
        map_key: Whether it is part of the key of an item in a list of a response. A field with an entity always is.
        selects_all: Of a list of topics in a request, the values that select all topics: `null`, `empty`, or
            `null, empty 0` where only some versions have such a value.
        answers: The field of the request that it answers or repeats, where that has another name. Several names,
            separated by spaces, if the versions of the request differ.
        errors: Of an error code, the codes that it can carry, separated by spaces; names in lower case are groups of
            codes (`sluice.protocol.error_codes`). Empty: no code that a fault rule could choose by this level.
        errors_fall_back: Whether versions without this field carry its errors on their deepest level instead.
        on_error: Its value in an item that failed: a literal, `kept` as the item had it, or the `message` of the code.
    """

    __slots__ = (
        "answers",
        "compact",
        "entity",
        "entity_by",
        "errors",
        "errors_fall_back",
        "map_key",
        "null",
        "on_error",
        "selects_all",
        "tag",
        "versions",
    )

    def __init__(
        self,
        versions: str | None = None,
        *,
        null: str | None = None,
        tag: int | None = None,
        compact: bool = True,
        entity: str | Mapping[int, str] | None = None,
        entity_by: str = "",
        map_key: bool = False,
        selects_all: str = "",
        answers: str = "",
        errors: str | None = None,
        errors_fall_back: bool = True,
        on_error: int | str | None = "default",
    ) -> None:
        self.versions = EVERY_VERSION if versions is None else _range(versions)
        self.null = NO_VERSION if null is None else _range(null)
        self.tag = tag
        self.compact = compact
        self.entity = entity
        self.entity_by = entity_by
        self.map_key = map_key
        self.selects_all = selects_all
        self.answers = answers
        self.errors = errors
        self.errors_fall_back = errors_fall_back
        self.on_error = on_error


class Single:
    """The usual shape of a message, for which there are fast codecs (`codec.single_element`).

    Each array on the path `arrays` has one element. The fields `null` and `empty`, names with a space between them,
    are null or empty. No tagged field is set.
    """

    __slots__ = ("arrays", "empty", "null")

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
# 16 bytes, not uuid.UUID: nobody computes with one, and making the object costs as much as a whole small request.
uuid = Annotated[bytes, Type("uuid", "16s", 16)]
string = Annotated[str, Type("string")]
bytes_ = Annotated[bytes, Type("bytes")]
# Decoded as a view on the buffer they came in. Encoded by reference, in one piece or in several.
records_ = Annotated[bytes | memoryview | Segments, Type("records")]

ZERO_UUID = bytes(16)

"""Random requests of all APIs, generated from the schemas: valid, unusual and invalid values of each field.

The values are drawn from what exists in the cluster (`prepare` in cases/generated.py), what does not exist, and the
limits of each type. Ids that belong together, such as a group's member and its epoch, are mostly those of earlier
responses. Times are short, so that no request waits for long.
"""

from random import Random
from typing import Any

from sluice.protocol.apis import API_KEYS, Api
from sluice.protocol.apis.fetch import FetchTopic
from sluice.protocol.message import Field, Message, fields_of
from sluice.protocol.types import GROUP_ID, PARTITION, TOPIC_ID, TOPIC_NAME, TRANSACTIONAL_ID, ZERO_UUID
from tests.support.records import batch

TOPICS = ("generated-a", "generated-b")
GROUPS = ("generated-group", "generated-empty")
_NAMES = (*TOPICS, *TOPICS, "generated-missing", "", "no topic!", "x" * 250)
_GROUP_IDS = (*GROUPS, "generated-missing", "")
TRANSACTION = "generated-transaction"
_TRANSACTIONAL_IDS = (TRANSACTION, "")
_TEXTS = ("", "x", "a text")
_UNKNOWN_ID = bytes(range(16))
_BATCHES = (batch(b"v"), batch(b"v", b"w"), b"", b"\0" * 70, batch(b"v")[:-1])
# Fields whose values belong together, by the names that they have in some messages.
_MEMBER = {
    "group_id": "group",
    "member_id": "member",
    "generation_id": "epoch",
    "generation_id_or_member_epoch": "epoch",
    "member_epoch": "epoch",
}
_PRODUCER = {
    "transactional_id": "transaction",
    "producer_id": "producer",
    "producer_epoch": "epoch",
    "v3_and_below_transactional_id": "transaction",
    "v3_and_below_producer_id": "producer",
    "v3_and_below_producer_epoch": "epoch",
}
_KNOWN_SHARE = 0.8  # of requests whose ids are those of an earlier response
_KNOWN = 3  # the latest are drawn
# Values by the name of a field; others are drawn by type.
_BY_NAME: dict[str, tuple[Any, ...]] = {
    "acks": (1, -1, 1, 3),
    "current_leader_epoch": (-1, -1, 0, 7),
    "isolation_level": (0, 1),
    "leader_epoch": (-1, 0, 7),
    "max_bytes": (1 << 20, 1 << 20, 0, 100),
    "max_wait_ms": (0, 0, 20),
    "member_id": ("", "", "unknown"),
    "min_bytes": (0, 1, 1),
    "num_partitions": (1, 2, -1, 0),
    "partition_max_bytes": (1 << 20, 0, 100),
    "rebalance_timeout_ms": (1_000, 0, -1),
    "replica_id": (-1,),
    "replica_state": (None,),
    "replication_factor": (1, -1, 0, 2),
    "session_epoch": (-1, 0, 1),
    # Kafka fails with the largest ids, because they belong to none of its cache's shards.
    "session_id": (0, 1, 2, 5, -1, 1_000),
    "session_timeout_ms": (60_000, 0, 30_000),  # no session expires within a history
    "timeout_ms": (1_000, 0, -1),
    "timestamp": (-1, -2, -3, 0, 1_700_000_000_000),
    "transaction_timeout_ms": (60_000, 0, -1),
    "validate_only": (True,),
}
# Values by the names of a message and its field.
_BY_FIELD: dict[tuple[str, str], tuple[Any, ...]] = {
    # Kafka fails with an internal error for a known topic without partitions, or with a negative one.
    ("AlterShareGroupOffsetsRequestPartition", "partition_index"): (0, 0, 1, 7),
    ("DescribeShareGroupOffsetsRequestGroup", "group_id"): (*GROUPS, "generated-missing"),
    ("DescribeShareGroupOffsetsRequestTopic", "partitions"): ([0], [1], [0, 1], [7]),
}
_BY_ENTITY: dict[object, tuple[Any, ...]] = {
    GROUP_ID: _GROUP_IDS,
    PARTITION: (0, 0, 1, 7, -1),
    TOPIC_NAME: _NAMES,
    TRANSACTIONAL_ID: _TRANSACTIONAL_IDS,
}
# Kafka never responds to an AddPartitionsToTxn (v4) without transactions.
_NEVER_EMPTY = ("transactions",)
_NULL_SHARE = 0.15
_MOST_ITEMS = 3


class Generator:
    """Draws requests; the same seed gives the same requests, but for the topic ids of the cluster."""

    def __init__(self, random: Random, topic_ids: list[bytes]) -> None:
        self._random = random
        self._topic_ids = (*topic_ids, *topic_ids, ZERO_UUID, _UNKNOWN_ID)
        # The latest ids of earlier responses; the names of their fields are the keys of each.
        self._members: list[dict[str, Any]] = []
        self._producers: list[dict[str, Any]] = []

    def request(self, api: Api, version: int) -> Message:
        return self._message(api.request, version)

    def learn(self, request: Message, response: object) -> None:
        """Keep the ids of a response for later requests, with those of its request."""
        if not isinstance(response, Message) or getattr(response, "error_code", None):
            return
        for names, known, needed in ((_MEMBER, self._members, "member"), (_PRODUCER, self._producers, "producer")):
            found = {
                part: value
                for message in (request, response)
                for name, part in names.items()
                if (value := getattr(message, name, None)) not in (None, "", -1)
            }
            if needed in found and any(hasattr(response, name) for name, part in names.items() if part == needed):
                known.append(found)
                del known[:-_KNOWN]

    def _message(self, kind: type[Message], version: int) -> Message:
        fields = [field for field in fields_of(kind) if version in field.versions]
        drawn = {field.name: self._field(kind, field, version) for field in fields}
        for names, known in ((_MEMBER, self._members), (_PRODUCER, self._producers)):
            ids = [name for name in names if name in drawn]
            if known and any(name not in ("group_id", "transactional_id") for name in ids):
                together = self._random.choice(known)
                if self._random.random() < _KNOWN_SHARE:
                    drawn |= {name: together[names[name]] for name in ids if names[name] in together}
        if "records" in drawn and self._producers and self._random.random() < _KNOWN_SHARE:
            drawn["records"] = self._batch_of_producer()
        return kind(**{name: value for name, value in drawn.items() if value is not Ellipsis})

    def _batch_of_producer(self) -> bytes:
        random, ids = self._random, self._random.choice(self._producers)
        return batch(
            *[b"v"] * random.choice((1, 1, 2)),
            producer_id=ids["producer"],
            producer_epoch=ids.get("epoch", 0),
            base_sequence=random.choice((0, 0, 1, 2, 3)),
            transactional=random.random() < 0.5,
        )

    def _field(self, kind: type[Message], field: Field, version: int) -> Any:
        values = _BY_FIELD.get((kind.__name__, field.name))
        return self._value(kind, field, version) if values is None else self._random.choice(values)

    def _value(self, kind: type[Message], field: Field, version: int) -> Any:
        random = self._random
        if field.name in _BY_NAME:
            return random.choice(_BY_NAME[field.name])
        if version in field.null and random.random() < _NULL_SHARE:
            return None
        if field.is_array:
            fewest = 1 if field.name in _NEVER_EMPTY else 0
            return [self._item(kind, field, version) for _ in range(random.randrange(fewest, _MOST_ITEMS))]
        return self._item(kind, field, version)

    def _item(self, kind: type[Message], field: Field, version: int) -> Any:
        random = self._random
        if field.struct is not None:
            return self._message(field.struct, version)
        entity = field.meaning.entity
        if entity == TOPIC_ID and kind is FetchTopic:  # Kafka fails with the zero id behind another topic
            return random.choice([one for one in self._topic_ids if one != ZERO_UUID])
        if entity == TOPIC_ID or (field.type is not None and field.type.name == "uuid"):
            return random.choice(self._topic_ids)
        if isinstance(entity, str) and entity in _BY_ENTITY:
            return random.choice(_BY_ENTITY[entity])
        return self._of_type(field)

    def _of_type(self, field: Field) -> Any:
        random = self._random
        assert field.type is not None
        name = field.type.name
        if "record" in name:
            return random.choice(_BATCHES)
        if "string" in name:
            return random.choice(_TEXTS)
        if name == "bool":
            return random.random() < 0.5
        if "byte" in name:
            return random.choice((b"", b"\0\1", b"bytes"))
        if name.startswith("float"):
            return random.choice((0.0, 1.5, -1.0))
        if name.startswith("u"):
            return random.choice((0, 1, 2, 5))
        limit = 1 << (8 * field.type.size - 1)
        return random.choice((0, 1, 2, 5, -1, limit - 1 if field.type.size < 8 else 1_000))


def apis(versions: dict[int, tuple[int, int]], excluded: dict[str, str]) -> list[tuple[Api, range]]:
    """Return the APIs and their versions, without those that are excluded by name."""
    return [
        (API_KEYS[key], range(first, last + 1))
        for key, (first, last) in sorted(versions.items())
        if API_KEYS[key].name not in excluded
    ]

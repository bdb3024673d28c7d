"""The error codes that responses of each API may contain, and those in a given response.

They are declared with the fields (`V.errors`), from Kafka's response classes, KafkaApis and the coordinators.

The level of a code is `top`, or the kind of the list items that contain it: `group`, `transaction`, `topic`,
`partition`, or `item` for any other.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import cast

from sluice.protocol.apis import API_KEYS
from sluice.protocol.codec.compile import load
from sluice.protocol.codec.source import Source

from . import types
from .errors import ErrorCode
from .message import Message, fields_of

TOP, GROUP, TRANSACTION, TOPIC, PARTITION, ITEM = "top", "group", "transaction", "topic", "partition", "item"
_LEVELS = {
    types.GROUP_ID: GROUP,
    types.TRANSACTIONAL_ID: TRANSACTION,
    types.TOPIC_NAME: TOPIC,
    types.TOPIC_ID: TOPIC,
    types.PARTITION: PARTITION,
}

_COORDINATOR = "COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR"
_GROUP_COORDINATOR = f"{_COORDINATOR} GROUP_AUTHORIZATION_FAILED INVALID_GROUP_ID"
_MEMBER = "UNKNOWN_MEMBER_ID FENCED_INSTANCE_ID REBALANCE_IN_PROGRESS ILLEGAL_GENERATION"
_PRODUCER = (
    "INVALID_TXN_STATE INVALID_PRODUCER_ID_MAPPING INVALID_PRODUCER_EPOCH PRODUCER_FENCED CONCURRENT_TRANSACTIONS"
    " TRANSACTION_ABORTABLE TRANSACTIONAL_ID_AUTHORIZATION_FAILED TRANSACTIONAL_ID_NOT_FOUND"
)
_CONTROLLER = "NOT_CONTROLLER CLUSTER_AUTHORIZATION_FAILED POLICY_VIOLATION"
# Groups of codes for the declarations. Any request may receive `any`.
_GROUPS = {
    "any": "UNKNOWN_SERVER_ERROR INVALID_REQUEST UNSUPPORTED_VERSION REQUEST_TIMED_OUT",
    "moved": "NOT_LEADER_OR_FOLLOWER FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH UNKNOWN_TOPIC_OR_PARTITION"
    " REPLICA_NOT_AVAILABLE KAFKA_STORAGE_ERROR TOPIC_AUTHORIZATION_FAILED LEADER_NOT_AVAILABLE",
    "coordinator": _GROUP_COORDINATOR,
    "member": _MEMBER,
    "producer": _PRODUCER,
    "txn_coordinator": f"{_COORDINATOR} {_PRODUCER}",
    "commit": f"{_GROUP_COORDINATOR} {_MEMBER} OFFSET_METADATA_TOO_LARGE INVALID_COMMIT_OFFSET_SIZE"
    " TOPIC_AUTHORIZATION_FAILED UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID STALE_MEMBER_EPOCH GROUP_ID_NOT_FOUND"
    " FENCED_MEMBER_EPOCH",
    "fetched_offset": "UNKNOWN_TOPIC_OR_PARTITION TOPIC_AUTHORIZATION_FAILED UNSTABLE_OFFSET_COMMIT UNKNOWN_TOPIC_ID",
    "controller": _CONTROLLER,
    "topic": f"{_CONTROLLER} TOPIC_AUTHORIZATION_FAILED INVALID_TOPIC_EXCEPTION THROTTLING_QUOTA_EXCEEDED",
    "config": f"{_CONTROLLER} TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED INVALID_CONFIG"
    " UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION KAFKA_STORAGE_ERROR",
    "scram": "UNACCEPTABLE_CREDENTIAL DUPLICATE_RESOURCE RESOURCE_NOT_FOUND UNSUPPORTED_SASL_MECHANISM",
    "share_coordinator": f"{_COORDINATOR} CLUSTER_AUTHORIZATION_FAILED",
    "acls": f"{_CONTROLLER} SECURITY_DISABLED",
    "heartbeat": f"{_GROUP_COORDINATOR} UNKNOWN_MEMBER_ID FENCED_MEMBER_EPOCH GROUP_ID_NOT_FOUND GROUP_MAX_SIZE_REACHED"
    " TOPIC_AUTHORIZATION_FAILED",
    "share_session": "GROUP_AUTHORIZATION_FAILED SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH"
    " SHARE_SESSION_LIMIT_REACHED",
    "share_state": f"{_COORDINATOR} CLUSTER_AUTHORIZATION_FAILED GROUP_ID_NOT_FOUND UNKNOWN_TOPIC_OR_PARTITION",
    "share_offset": "UNKNOWN_TOPIC_OR_PARTITION TOPIC_AUTHORIZATION_FAILED KAFKA_STORAGE_ERROR",
}


@cache
def codes_of(api_key: int) -> dict[ErrorCode, str]:
    return {
        ErrorCode[name]: level
        for level, declared in _declared(API_KEYS[api_key].response, TOP)
        for word in declared.split()
        for name in _GROUPS.get(word, word).split()
    }


def apis_of(code: ErrorCode) -> list[int]:
    return [key for key in API_KEYS if code in codes_of(key)]


def codes_in(response: Message) -> list[int]:
    return _reader_of(type(response))(response)


def level_of_items(item: type[Message]) -> str:
    entities = (field.meaning.entity for field in fields_of(item) if not field.is_array)
    return next((_LEVELS[entity] for entity in entities if isinstance(entity, str)), ITEM)


def _declared(cls: type[Message], level: str) -> Iterator[tuple[str, str]]:
    for field in fields_of(cls):
        if field.meaning.errors is not None:
            yield level, field.meaning.errors
        elif field.is_array and field.struct is not None:
            yield from _declared(field.struct, level_of_items(field.struct))


# -- generated source --------------------------------------------------------------------------------------------------


@cache
def _reader_of(cls: type[Message]) -> Callable[[Message], list[int]]:
    source = Source()
    source.begin_function("def codes_in(response):")
    source.line("found = []")
    _read_codes(source, cls, "response")
    source.line("return found")
    return cast("Callable[[Message], list[int]]", load(source, "codes_in", f"<sluice error codes of {cls.__name__}>"))


def _read_codes(source: Source, cls: type[Message], variable: str) -> None:
    for field in fields_of(cls):
        value = f"{variable}.{field.name}"
        if field.meaning.errors is not None:
            source.line(f"if {value}:")
            source.line(f"    found.append({value})")
        elif field.is_array and field.struct is not None and any(_declared(field.struct, ITEM)):
            item = source.name(f"each_{field.name}")
            source.line(f"for {item} in {value} or ():")
            source.indent()
            _read_codes(source, field.struct, item)
            source.dedent()

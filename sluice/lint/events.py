"""The events that facts read, with only the fields that they read, because decoding costs most of the time.

The fields are those of `sluice.journal_events`; those without a value there have one here, so that journals of older
versions are read, too.
"""

from typing import NamedTuple, Union

import msgspec

from sluice.journal_events import KINDS, NO_ID, FetchedRecords, ProducedBatch, Value


class ClientKey(NamedTuple):
    """The identity of a client."""

    client_id: str
    software_name: str
    software_version: str


class TopicPartition(msgspec.Struct, gc=False):
    topic: str
    partition: int
    producer_id: int = NO_ID
    producer_epoch: int = NO_ID
    base_sequence: int = NO_ID
    offset: int = NO_ID
    batch: ProducedBatch | None = None
    fetched: FetchedRecords | None = None


class ClientEvent(msgspec.Struct, tag_field="kind", gc=False):
    seq: int
    at_ns: int
    broker: int
    connection: int
    peer: str
    client_id: str
    software_name: str
    software_version: str


class ConnectionOpened(ClientEvent, tag="connection-opened", gc=False):
    pass


class ConnectionRefused(ClientEvent, tag="connection-refused", gc=False):
    throttle_time_ms: int


class ConnectionClosed(ClientEvent, tag="connection-closed", gc=False):
    by_client: bool
    reason: str


class Request(ClientEvent, tag="request", gc=False):
    api: str
    version: int
    correlation_id: int
    received_ns: int
    answered_ns: int | None
    written_ns: int | None
    request_bytes: int
    response_bytes: int
    partitions: list[TopicPartition]
    partitions_left_off: int
    group_id: str
    transactional_id: str
    attempt_key: str
    error_codes: list[int]
    throttle_time_ms: int
    rule_id: str
    sent: dict[str, Value] = {}
    returned: dict[str, Value] = {}


class Throttle(ClientEvent, tag="throttle", gc=False):
    api: str
    version: int
    correlation_id: int
    quota: str
    throttle_time_ms: int


class Fault(ClientEvent, tag="fault", gc=False):
    api: str
    correlation_id: int
    rule_id: str
    action: str


class GroupState(msgspec.Struct, tag_field="kind", tag="group-state", gc=False):
    seq: int
    at_ns: int
    broker: int
    group_id: str
    group_type: str
    before: str
    after: str
    generation: int
    members: int


class Gap(msgspec.Struct, tag_field="kind", tag="gap", gc=False):
    seq: int
    lost: int


READ: tuple[type[msgspec.Struct], ...] = (
    *(Request, ConnectionOpened, ConnectionRefused, ConnectionClosed, Throttle, Fault),
    *(GroupState, Gap),
)
OF_CLIENTS = {str(each.__struct_config__.tag) for each in READ if issubclass(each, ClientEvent)}

_read = {str(each.__struct_config__.tag) for each in READ}
# Events of the other kinds are decoded to an object without fields.
_others = [msgspec.defstruct(f"_{tag}", [], tag_field="kind", tag=tag) for tag in KINDS if tag not in _read]
DECODER: msgspec.json.Decoder[msgspec.Struct] = msgspec.json.Decoder(Union[(*READ, *_others)])  # of a tuple

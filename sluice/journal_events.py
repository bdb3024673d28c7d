"""The events of the journal: one type per kind, independent of the broker.

As JSON, an event is an object with its `kind` and all fields of its type, in order. Times are nanoseconds since the
epoch on a monotonic clock that was set to the wall clock's time at the start of the journal.
"""

from collections.abc import Iterator
from typing import get_args

import msgspec

# The value of an integer field that does not apply.
NO_ID = -1

# So many bytes of lines are in the processor's cache together with their events, which halves the time of decoding.
BLOCK_BYTES = 512 << 10

Value = int | str | bool | list[str]  # of a field in `Request.sent` and `Request.returned`


class Event(msgspec.Struct, kw_only=True, frozen=True, tag_field="kind"):
    """The fields of all events.

    seq: number of the event in the cluster, from 1, without gaps
    at_ns: time of the event; for a request, of its response
    broker: node id of the broker concerned; -1 if there is none
    """

    seq: int
    at_ns: int
    broker: int


class ClientEvent(Event, kw_only=True, frozen=True):
    """The fields of events of a client.

    connection: number of the connection in the cluster, from 1
    listener: name of the broker's listener
    peer: address and port of the client
    client_id: client id in the last request header; "" before the first request, and if it is null
    software_name: client software name from ApiVersions (KIP-511), else ""
    software_version: client software version from ApiVersions, else ""
    principal: principal of the connection, such as User:alice
    """

    connection: int
    listener: str
    peer: str
    client_id: str
    software_name: str
    software_version: str
    principal: str


class ConnectionOpened(ClientEvent, kw_only=True, frozen=True, tag="connection-opened"):
    """A client connected."""


class ConnectionRefused(ClientEvent, kw_only=True, frozen=True, tag="connection-refused"):
    """A limit rejects a new connection, which is closed after `throttle_time_ms`.

    reason: the limit
    throttle_time_ms: delay of the close
    """

    reason: str
    throttle_time_ms: int


class ConnectionClosed(ClientEvent, kw_only=True, frozen=True, tag="connection-closed"):
    """A connection ended.

    by_client: whether the client closed it
    reason: why the broker closed it; may be empty
    """

    by_client: bool
    reason: str


class ProducedBatch(msgspec.Struct, kw_only=True, frozen=True):
    """The first batch that a Produce request has for a partition; of a message set (magic 0 or 1), only `bytes`.

    records: number of records, from the batch's header; -1 for a message set
    bytes: size of all batches for the partition
    compression: none, gzip, snappy, lz4 or zstd; "" for a message set
    is_transactional: whether the batch belongs to a transaction
    first_timestamp_ms: timestamp of the first record; -1 without one
    max_timestamp_ms: highest timestamp of the records; -1 without one
    """

    records: int = NO_ID
    bytes: int
    compression: str = ""
    is_transactional: bool = False
    first_timestamp_ms: int = NO_ID
    max_timestamp_ms: int = NO_ID


class FetchedRecords(msgspec.Struct, kw_only=True, frozen=True):
    """The response to a Fetch for one partition.

    bytes: size of the returned records
    high_watermark: high watermark; -1 with an error
    last_stable_offset: last stable offset; -1 with an error, or if the version has no such field
    """

    bytes: int
    high_watermark: int
    last_stable_offset: int


class TopicPartition(msgspec.Struct, kw_only=True, frozen=True):
    """A partition in a request.

    topic: topic name, or topic id in hexadecimal if it is unknown
    partition: partition index; -1 if the request names only the topic
    producer_id: producer id of the first batch in a Produce; -1 without an idempotent producer
    producer_epoch: producer epoch of that batch
    base_sequence: base sequence of that batch
    record_hashes: hashes of key, value and headers of that batch's first 64 records; empty unless
        sluice.journal.record.hashes is true
    offset: the first offset of the produced records (Produce), the offset to fetch from (Fetch), the committed offset
        (OffsetCommit, TxnOffsetCommit, OffsetFetch), or the found offset (ListOffsets); -1 if unknown
    batch: what a Produce request has for the partition, else null
    fetched: what a Fetch response has for the partition, else null
    """

    topic: str
    partition: int
    producer_id: int = NO_ID
    producer_epoch: int = NO_ID
    base_sequence: int = NO_ID
    record_hashes: list[str] = []
    offset: int = NO_ID
    batch: ProducedBatch | None = None
    fetched: FetchedRecords | None = None


class Request(ClientEvent, kw_only=True, frozen=True, tag="request"):
    """A request and its response.

    api: API name, such as Produce
    api_key: API key
    version: API version of the request
    correlation_id: correlation id of the request
    received_ns: when its last byte was read; for a pipelined request, an upper bound
    started_ns: when its handling began
    answered_ns: when its response was ready; null if the connection ended before
    written_ns: when its response was passed to the socket; null if it was not, or there is none (Produce with acks=0)
    request_bytes: size of header and body, without the size field
    response_bytes: the same for the response; 0 without a response
    partitions: topics and partitions in the request, at most 16; for a fetch session, those of the session
    partitions_left_off: number of further partitions
    group_id: group id in the request, else ""
    transactional_id: transactional id in the request, else ""
    attempt_key: identity of the request across retries: TOPIC-PARTITION of each partition, with an idempotent
        producer's @PRODUCER_ID.EPOCH.SEQUENCE, joined by commas
    error_codes: distinct error codes in the response
    throttle_time_ms: throttle time in the response; 0 if its version has no such field
    rule_id: id of the fault rule that hit the request, else ""
    sent: fields of the request by Kafka's names, of some APIs; absent ones are left out
    returned: the same of the response
    """

    api: str
    api_key: int
    version: int
    correlation_id: int
    received_ns: int
    started_ns: int
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


class Throttle(ClientEvent, kw_only=True, frozen=True, tag="throttle"):
    """A quota throttles a client.

    api: API of the request that exceeded the quota
    version: its version
    correlation_id: its correlation id
    quota: type of the quota: Produce, Fetch, Request or ControllerMutation
    throttle_time_ms: duration
    """

    api: str
    version: int
    correlation_id: int
    quota: str
    throttle_time_ms: int


class ShadowThrottle(ClientEvent, kw_only=True, frozen=True, tag="shadow-throttle"):
    """A quota would throttle a client, with `sluice.quota.mode=shadow`.

    api: API of the request that exceeded the quota
    version: its version
    correlation_id: its correlation id
    quota: type of the quota: Produce, Fetch, Request or ControllerMutation
    throttle_time_ms: duration
    """

    api: str
    version: int
    correlation_id: int
    quota: str
    throttle_time_ms: int


class Fault(ClientEvent, kw_only=True, frozen=True, tag="fault"):
    """A fault rule hit a request or a connection.

    api: API of the request; "" if the rule hit the connection
    version: its version; -1 if the rule hit the connection
    correlation_id: its correlation id; -1 if the rule hit the connection
    rule_id: id of the rule
    action: what the rule did
    """

    api: str
    version: int
    correlation_id: int
    rule_id: str
    action: str


class RuleChange(Event, kw_only=True, frozen=True, tag="rule-change"):
    """A fault rule was added, or has ended.

    rule_id: id of the rule
    change: added, or ended: by its time, by its removal, or by an error
    rule: the added rule as JSON, as in the response of the admin port; "" if it has ended
    """

    rule_id: str
    change: str
    rule: str


class QuotaChange(Event, kw_only=True, frozen=True, tag="quota-change"):
    """A client quota was set or removed.

    entity: the entity, such as `client-id=shop` or `user=<default>`
    quotas: its quotas now, by Kafka's names (producer_byte_rate); those that are missing do not apply
    """

    entity: str
    quotas: dict[str, float]


class GroupState(Event, kw_only=True, frozen=True, tag="group-state"):
    """A group changed its state.

    group_id: group id
    group_type: classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)
    before: previous state, as in DescribeGroups
    after: new state
    generation: generation of the group; for a consumer group (KIP-848), its epoch
    members: number of members
    """

    group_id: str
    group_type: str
    before: str
    after: str
    generation: int
    members: int


class TransactionState(Event, kw_only=True, frozen=True, tag="transaction-state"):
    """A transaction changed its state, and the change is replicated.

    transactional_id: transactional id
    producer_id: producer id
    producer_epoch: producer epoch
    before: previous state, as in DescribeTransactions
    after: new state
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    before: str
    after: str


class AcquisitionTimeout(Event, kw_only=True, frozen=True, tag="acquisition-timeout"):
    """The acquisition lock of records of a share group (KIP-932) timed out before they were acknowledged.

    group_id: group id
    member_id: member that had acquired the records
    topic: topic name
    partition: partition index
    first_offset: first of the offsets
    last_offset: last of the offsets
    """

    group_id: str
    member_id: str
    topic: str
    partition: int
    first_offset: int
    last_offset: int


class LeaderChange(Event, kw_only=True, frozen=True, tag="leader-change"):
    """A partition has a new leader, `broker`, or none.

    topic: topic name
    partition: partition index
    before: node id of the previous leader; -1 if there was none
    leader_epoch: epoch of the new leader
    isr: in-sync replicas
    lost_records: number of the previous leader's records that the new one did not have
    """

    topic: str
    partition: int
    before: int
    leader_epoch: int
    isr: list[int]
    lost_records: int


class BrokerState(Event, kw_only=True, frozen=True, tag="broker-state"):
    """A broker changed its state.

    state: running, stopped or isolated (the process); fenced or unfenced (in the controller's view)
    """

    state: str


class ScenarioStep(Event, kw_only=True, frozen=True, tag="scenario-step"):
    """A scenario starts, executes a step, or ends; `broker` is the broker concerned, or -1.

    run: id of the run
    scenario: name of the scenario
    step: place in the scenario's file, such as steps[3].stop; "" without one
    what: what happens
    problem: why the step failed, else ""
    """

    run: str
    scenario: str
    step: str
    what: str
    problem: str


class Gap(Event, kw_only=True, frozen=True, tag="gap"):
    """Events were overwritten before they were read; `seq` is that of the last one.

    lost: number of lost events
    """

    lost: int


AnyEvent = (
    ConnectionOpened
    | ConnectionRefused
    | ConnectionClosed
    | Request
    | Throttle
    | ShadowThrottle
    | Fault
    | RuleChange
    | QuotaChange
    | GroupState
    | TransactionState
    | AcquisitionTimeout
    | LeaderChange
    | BrokerState
    | ScenarioStep
    | Gap
)

KINDS: dict[str, type[AnyEvent]] = {str(each.__struct_config__.tag): each for each in get_args(AnyEvent)}


_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def decode(data: bytes | str) -> AnyEvent:
    """Decode an event from JSON. Raises msgspec.DecodeError."""
    return _decoder.decode(data)


def decode_lines(lines: bytes) -> list[AnyEvent]:
    """Decode events, one per line. Raises msgspec.DecodeError."""
    return _decoder.decode_lines(lines)


def blocks_of(lines: bytes) -> Iterator[bytes]:
    """Cut lines into blocks of about `BLOCK_BYTES`."""
    begin = 0
    while begin < len(lines):
        end = lines.find(b"\n", begin + BLOCK_BYTES) + 1 or len(lines)
        yield lines[begin:end]
        begin = end


def schema() -> dict[str, object]:
    return msgspec.json.schema(AnyEvent)

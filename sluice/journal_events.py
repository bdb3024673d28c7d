"""What the journal tells: one type for each kind of event. Pure data, read by judges and pipelines without a broker.

Encoded as JSON, an event is an object whose `kind` says which of these it is; the fields are those of the type, in its
order, and none is ever left out. Times are nanoseconds since the epoch on one clock that never goes back: it showed the
wall clock's time when the journal began, and is read to 1/1024 of a millisecond.
"""

import msgspec

# What a field holds that does not apply.
NOBODY = -1


class Event(msgspec.Struct, kw_only=True, frozen=True, tag_field="kind"):
    """What all events have.

    seq: numbers the events of a cluster from 1 on, without a hole
    at_ns: when it happened; of a request, when it was answered
    broker: node id of the broker it happened on or, of the cluster's, to; -1: to none
    """

    seq: int
    at_ns: int
    broker: int


class ClientEvent(Event, kw_only=True, frozen=True):
    """What a client did or was told.

    connection: numbers the connections of a cluster from 1 on
    listener: the listener that the client came to
    peer: address and port that it came from
    client_id: as in the last request header; "" before the first, and where it is null
    software_name: as ApiVersions told it (KIP-511), else ""
    software_version: the same
    principal: who sent it, such as User:alice
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
    """A limit keeps a connection out that was opened; it is closed after `throttle_time_ms`.

    reason: which limit
    throttle_time_ms: how long the broker keeps silent before it closes
    """

    reason: str
    throttle_time_ms: int


class ConnectionClosed(ClientEvent, kw_only=True, frozen=True, tag="connection-closed"):
    """A connection ended.

    by_client: whether the client ended it
    reason: why the broker did, where there is more to say
    """

    by_client: bool
    reason: str


class TopicPartition(msgspec.Struct, kw_only=True, frozen=True):
    """A partition that a request names.

    topic: its name, or its id in hexadecimal where nobody knows it by that
    partition: its index; -1: the request names the topic as a whole
    producer_id: of the first batch that Produce brings, -1 of a producer that is not idempotent
    producer_epoch: the same
    base_sequence: the same
    """

    topic: str
    partition: int
    producer_id: int = NOBODY
    producer_epoch: int = NOBODY
    base_sequence: int = NOBODY


class Request(ClientEvent, kw_only=True, frozen=True, tag="request"):
    """A request and its answer.

    api: such as Produce
    api_key: its number
    version: of the request
    correlation_id: what the client numbered it with
    received_ns: its last byte was read; of one that waited behind others, at most this late
    started_ns: it was begun to be handled
    answered_ns: its answer was ready; null: it has none, as the connection ended before
    written_ns: the answer was handed to the socket; null: it has not been, or there is none (Produce with acks=0)
    request_bytes: header and body, without the size before them
    response_bytes: the same of the answer; 0: there is none
    partitions: topics and partitions that it names, the first 16 of them; of a fetch, those of its session
    partitions_left_off: how many more there are
    group_id: the consumer group that it is about, else ""
    transactional_id: the same
    attempt_key: what stays the same when the request is sent again: of each partition TOPIC-PARTITION and, from an
        idempotent producer, @PRODUCER_ID.EPOCH.SEQUENCE; joined by commas
    error_codes: the error codes in the answer, each once
    throttle_time_ms: as the answer has it; 0 where its version has no such field
    rule_id: of the fault rule that hit it, else ""
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


class Throttle(ClientEvent, kw_only=True, frozen=True, tag="throttle"):
    """A quota makes a client wait.

    api: of the request that exceeded it
    version: the same
    correlation_id: the same
    quota: which quota demands the wait: Produce, Fetch, Request or ControllerMutation
    throttle_time_ms: for how long
    """

    api: str
    version: int
    correlation_id: int
    quota: str
    throttle_time_ms: int


class Fault(ClientEvent, kw_only=True, frozen=True, tag="fault"):
    """A fault rule hit a request or a connection.

    api: of the request, "" where it hit the connection
    version: the same, -1
    correlation_id: the same, -1
    rule_id: the rule
    action: what it did
    """

    api: str
    version: int
    correlation_id: int
    rule_id: str
    action: str


class GroupState(Event, kw_only=True, frozen=True, tag="group-state"):
    """A group went on to another state.

    group_id: the group
    group_type: classic or consumer (KIP-848)
    before: the state it was in, as DescribeGroups names it
    after: the state it is in
    generation: of the group; its epoch where it is of KIP-848
    members: how many it has
    """

    group_id: str
    group_type: str
    before: str
    after: str
    generation: int
    members: int


class TransactionState(Event, kw_only=True, frozen=True, tag="transaction-state"):
    """A transactional id went on to another state, and that is replicated.

    transactional_id: whose
    producer_id: who has it
    producer_epoch: the same
    before: the state it was in, as DescribeTransactions names it
    after: the state it is in
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    before: str
    after: str


class LeaderChange(Event, kw_only=True, frozen=True, tag="leader-change"):
    """Another broker leads a partition, or none does: `broker`.

    topic: the partition's topic
    partition: its index
    before: who led it; -1: nobody
    leader_epoch: of the new leader
    isr: the replicas that are in sync
    lost_records: how many records of the leader before the new one did not have
    """

    topic: str
    partition: int
    before: int
    leader_epoch: int
    isr: list[int]
    lost_records: int


class BrokerState(Event, kw_only=True, frozen=True, tag="broker-state"):
    """Something happened to a broker.

    state: running, stopped or isolated, as it is; fenced or unfenced, as the controller takes it
    """

    state: str


class ScenarioStep(Event, kw_only=True, frozen=True, tag="scenario-step"):
    """A scenario begins, does something, or ends; `broker` is the one it does that to, -1 where it is to none.

    run: which run of it
    scenario: its name
    step: what it is about in the scenario's file, such as steps[3].stop; "" where it is nothing in it
    what: what happens
    problem: why it could not be done, else ""
    """

    run: str
    scenario: str
    step: str
    what: str
    problem: str


class Gap(Event, kw_only=True, frozen=True, tag="gap"):
    """Events that were lost to this reader: the ring had room for no more before they were read. `seq` is the last's.

    lost: how many
    """

    lost: int


AnyEvent = (
    ConnectionOpened
    | ConnectionRefused
    | ConnectionClosed
    | Request
    | Throttle
    | Fault
    | GroupState
    | TransactionState
    | LeaderChange
    | BrokerState
    | ScenarioStep
    | Gap
)

KINDS: dict[str, type[AnyEvent]] = {
    str(each.__struct_config__.tag): each
    for each in (
        ConnectionOpened,
        ConnectionRefused,
        ConnectionClosed,
        Request,
        Throttle,
        Fault,
        GroupState,
        TransactionState,
        LeaderChange,
        BrokerState,
        ScenarioStep,
        Gap,
    )
}


def decode(data: bytes | str) -> AnyEvent:
    """An event from its JSON. Raises msgspec.DecodeError."""
    event: AnyEvent = msgspec.json.decode(data, type=AnyEvent)
    return event


def schema() -> dict[str, object]:
    """The JSON Schema of an event."""
    return msgspec.json.schema(AnyEvent)

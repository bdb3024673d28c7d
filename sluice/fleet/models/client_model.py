"""The parameters of one kind of client, with the names of Kafka's configs."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from sluice.text.typed_decoding import ACCEPTED

_Ms = Annotated[float, Meta(ge=0, description="milliseconds, at least 0", extra=ACCEPTED)]
_PositiveMs = Annotated[float, Meta(gt=0, description="milliseconds, more than 0", extra=ACCEPTED)]
_Factor = Annotated[float, Meta(ge=1, le=10, description="a factor from 1 to 10", extra=ACCEPTED)]
_Share = Annotated[float, Meta(ge=0, lt=1, description="a share from 0 to less than 1", extra=ACCEPTED)]
_Rate = Annotated[float, Meta(gt=0, le=1000, description="a rate above 0, up to 1000", extra=ACCEPTED)]
_Bytes = Annotated[float, Meta(gt=0, le=1e9, description="bytes, more than 0, up to 1000000000", extra=ACCEPTED)]
_Count = Annotated[int, Meta(ge=1, description="a number of at least 1", extra=ACCEPTED)]


def config_name(field: str) -> str:
    """Return the config of a field: `retry.backoff.ms` of `retry_backoff_ms`."""
    return field.replace("_", ".")


class ClientModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=config_name):
    """A producer or consumer: its backoffs, timeouts and load.

    A backoff after n failures in a row is min(max, base * multiplier ** (n - 1) * factor) in whole milliseconds, with a
    uniform factor from 1 - jitter to 1 + jitter; if base >= max, it is the constant max (Kafka's ExponentialBackoff).

    Args:
        reconnect_backoff_ms, reconnect_backoff_max_ms: KIP-144.
        *_multiplier, *_jitter: Kafka's are 2 and 0.2.
        reconnect_backoff_scope: Whether failures are counted for each broker, as Kafka does, or for the client.
        reconnect_backoff_in_steps: Whether the wait for a connection for Metadata is a multiple of
            reconnect_backoff_ms, and for Fetch of retry_backoff_ms: the polls of Kafka's NetworkClient.
        retry_backoff_ms, retry_backoff_max_ms: KIP-580, of requests and of metadata.
        retry_backoff_wraps: Whether the backoff is 1 << n times the base in 32 bits, as in librdkafka. It is then none
            after some 25 failures, and restarts after 32.
        retries_merge: Whether the Produce requests in flight that failed are retried as one, as by librdkafka without
            idempotence. Others are retried one at a time, in order, as by an idempotent producer.
        retry_backoff_redraws: Whether the client draws again when a wait ends, as Kafka's producer does on every poll.
        metadata_backoff_redraws: The same for the wait for Metadata. Sluice's client draws it once.
        metadata_refresh: "backoff": requested with the retry backoff until it is received. "immediate": each failure
            requests it at once, from each broker in turn, and gives up then, as aiokafka does. "query": requested
            after the base of the retry backoff, or 1 s after a lost connection, as librdkafka does.
        leader_errors_count: Whether the retry backoff grows after NOT_LEADER_OR_FOLLOWER.
        request_timeout_ms: Time until a request without a response fails and its connection is closed.
        request_timeout_restarts: Whether timeouts are checked when a poll ends, as Kafka's. A record that begins a
            batch restarts the poll; a consumer's ends after poll_timeout_ms or at a heartbeat.
        socket_connection_setup_timeout_ms, socket_connection_setup_timeout_max_ms: Time until a connection attempt
            without a response fails; it doubles after each failure, with a jitter of 20 % (KIP-601).
        delivery_timeout_ms: Time after which a record fails (KIP-91).
        metadata_max_age_ms: Time after which metadata is requested without a reason.
        acks: "all" or "1". With "all", records wait until a killed replica is out of sync.
        requests_per_s: Operations per second and client, in a healthy cluster.
        records_per_request: Open loop only: operations that one request carries at most.
        record_bytes: Size of an operation, with its share of the request.
        role: Whether operations are records that the client produces, or that others produce for it to fetch.
        fetch_min_bytes, fetch_max_wait_ms: Fetch waits in the broker for this many bytes, for at most this time.
        fetch_waits_for_metadata: Whether a consumer fetches again only with new metadata after an error.
        group_member: Whether a consumer is in a group, and sends heartbeats.
        coordinator_lookup: "backoff": a lost coordinator is looked up with the retry backoff and after new metadata,
            and the next heartbeat connects to it. "eager": more often, and connected to at once, as by Kafka's.
        max_in_flight_requests_per_connection: Produce requests of a client without a response, at most; no limit above
            64. A closed loop has one.
        loop: "open": operations are created at this rate whatever happens. "closed": the next operation is created one
            period after the end of the previous one.
    """

    reconnect_backoff_ms: _Ms = 50
    reconnect_backoff_max_ms: _PositiveMs = 1000
    reconnect_backoff_multiplier: _Factor = 2
    reconnect_backoff_jitter: _Share = 0.2
    reconnect_backoff_scope: Literal["broker", "client"] = "broker"
    reconnect_backoff_in_steps: bool = False
    retry_backoff_ms: _Ms = 100
    retry_backoff_max_ms: _PositiveMs = 1000
    retry_backoff_multiplier: _Factor = 2
    retry_backoff_jitter: _Share = 0.2
    retry_backoff_wraps: bool = False
    retry_backoff_redraws: bool = True
    metadata_backoff_redraws: bool = False
    retries_merge: bool = False
    metadata_refresh: Literal["backoff", "immediate", "query"] = "backoff"
    leader_errors_count: bool = True
    request_timeout_ms: _PositiveMs = 30_000
    request_timeout_restarts: bool = False
    poll_timeout_ms: _PositiveMs = 1000
    socket_connection_setup_timeout_ms: _PositiveMs = 10_000
    socket_connection_setup_timeout_max_ms: _PositiveMs = 30_000
    delivery_timeout_ms: _PositiveMs = 120_000
    metadata_max_age_ms: _PositiveMs = 300_000
    acks: Literal["all", "1"] = "all"
    max_in_flight_requests_per_connection: _Count = 5
    requests_per_s: _Rate = 1.0
    records_per_request: _Count = 100
    record_bytes: _Bytes = 100
    loop: Literal["open", "closed"] = "open"
    role: Literal["producer", "consumer"] = "producer"
    fetch_min_bytes: _Bytes = 1
    fetch_max_wait_ms: _PositiveMs = 500
    fetch_waits_for_metadata: bool = True
    group_member: bool = True
    coordinator_lookup: Literal["backoff", "eager"] = "backoff"
    heartbeat_interval_ms: _PositiveMs = 3000
    session_timeout_ms: _PositiveMs = 45_000


class Group(NamedTuple):
    """Clients of one model."""

    name: str
    model: ClientModel
    clients: int

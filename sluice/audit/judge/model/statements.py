"""The KIPs' requirements for clients as separately observable statements: reference of probes, judge and report.

The numbers are those of docs/kip-*.md, without statements about brokers. A statement describes Kafka's own clients;
where the KIP's text differs and both are correct, the judge accepts both (report/kip_texts.toml).
"""

from functools import partial

import msgspec

from .observation import Role

_P, _C, _A = Role.PRODUCER, Role.CONSUMER, Role.ADMIN
_ANYONE = (_P, _C, _A)
_RETRY = ("retry.backoff.ms", "retry.backoff.max.ms")
_RECONNECT = ("reconnect.backoff.ms", "reconnect.backoff.max.ms")
_SETUP = ("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms")
RECOVERY = "metadata.recovery.strategy"
_DELIVERY = ("delivery.timeout.ms",)

_CLOSED = ("reconnect-closed", "reconnect-reset")
_UNANSWERED = (*_CLOSED, "reconnect-silent")
_PRODUCE_ERRORS = ("produce-timed-out", "produce-not-enough-replicas", "produce-not-leader")


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """One statement.

    id: such as KIP-580/1
    unobservable: why a broker cannot observe it; "" if it can
    origin: the KIP that requires it, if not the one in the id
    """

    id: str
    text: str
    roles: tuple[Role, ...] = _ANYONE
    settings: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    unobservable: str = ""
    origin: str = ""

    @property
    def kip(self) -> str:
        """The KIP that requires it, such as KIP-580."""
        return self.origin or self.id.partition("/")[0]


_of_retries = partial(Statement, settings=_RETRY)
_of_batches = partial(Statement, settings=_RETRY, roles=(_P,))
_of_reconnects = partial(Statement, settings=_RECONNECT)
_of_delivery = partial(Statement, settings=_DELIVERY, roles=(_P,))

_KIP_13 = (
    Statement(
        id="KIP-13/20",
        text="After a response with throttle_time_ms, sends no request on that connection until that time has passed.",
        probes=("throttle-produce", "throttle-fetch", "throttle-other", "throttle-long"),
        origin="KIP-219",
    ),
)

_KIP_580 = (
    _of_batches(
        id="KIP-580/1",
        text="Doubles the wait before each retry of a batch, from retry.backoff.ms, with ± 20 % jitter.",
        probes=(*_PRODUCE_ERRORS, "produce-mute"),
    ),
    _of_batches(
        id="KIP-580/2",
        text="Waits at most retry.backoff.max.ms before a retry, and at least 80 % of it once that is reached.",
        probes=(*_PRODUCE_ERRORS, "long-outage", "ten-minutes"),
    ),
    _of_batches(
        id="KIP-580/3",
        text="Waits retry.backoff.max.ms before each retry, without jitter, if retry.backoff.ms is above it.",
        probes=("produce-base-above-max",),
    ),
    _of_batches(
        id="KIP-580/4",
        text="Waits the same time before each retry if retry.backoff.ms equals retry.backoff.max.ms; by the KIP's text "
        "the first wait may be up to 20 % shorter.",
        probes=("produce-constant-backoff",),
    ),
    _of_batches(
        id="KIP-580/5", text="Counts the failures of each batch separately.", probes=("produce-two-partitions",)
    ),
    _of_batches(id="KIP-580/6", text="Restarts at retry.backoff.ms after a success.", probes=("produce-then-success",)),
    _of_batches(
        id="KIP-580/7",
        text="Resends a batch without a wait after it has learned of a new leader.",
        probes=("produce-new-leader",),
        origin="KIP-951",
    ),
    _of_retries(
        id="KIP-580/8",
        text="Requests the metadata of an unknown topic with waits that double, from retry.backoff.ms.",
        probes=("metadata-unknown-topic", "metadata-leader-not-available"),
    ),
    Statement(
        id="KIP-580/9",
        text="Requests metadata after lost connections with waits that double, plus the reconnect backoff.",
        settings=(*_RETRY, *_RECONNECT),
        probes=("metadata-disconnect",),
    ),
    _of_retries(
        id="KIP-580/10",
        text="Retries coordinator lookups and offset commits with waits that double, from retry.backoff.ms.",
        roles=(_C,),
        probes=("coordinator-lookup-error", "commit-error"),
    ),
    Statement(
        id="KIP-580/11",
        text="Retries failed heartbeats with waits that double, from retry.backoff.ms.",
        roles=(_C,),
        settings=(*_RETRY, "heartbeat.interval.ms"),
        probes=("heartbeat-error",),
    ),
    _of_retries(
        id="KIP-580/12",
        text="Rejoins a group after retry.backoff.ms each time, or (KIP text) with waits that double.",
        roles=(_C,),
        probes=("join-error",),
    ),
    _of_retries(
        id="KIP-580/13",
        text="Retries offset lookups after retry.backoff.ms each time, or (KIP text) with waits that double.",
        roles=(_C,),
        probes=("list-offsets-error",),
    ),
    _of_batches(
        id="KIP-580/14",
        text="Retries InitProducerId after retry.backoff.ms each time, or (KIP text) with waits that double.",
        probes=("init-producer-id-error",),
    ),
    _of_retries(
        id="KIP-580/15",
        text="Retries each admin call separately, with waits that double, from retry.backoff.ms.",
        roles=(_A,),
        probes=("admin-error",),
    ),
    _of_batches(
        id="KIP-580/16",
        text="Randomizes the waits before retries, so that clients that failed together do not retry together.",
        probes=_PRODUCE_ERRORS,
    ),
    _of_batches(
        id="KIP-580/17",
        text="Sends a failing batch no more often in its first second than the waits allow: 4 times by default.",
        probes=_PRODUCE_ERRORS,
    ),
    Statement(
        id="KIP-580/18",
        text="Waits retry.backoff.ms before each retry, if the client is older than KIP-580.",
        roles=(_P,),
        settings=("retry.backoff.ms",),
        probes=_PRODUCE_ERRORS,
    ),
)

_KIP_144 = (
    _of_reconnects(
        id="KIP-144/1",
        text="Doubles the wait after each failed connection, from reconnect.backoff.ms, with ± 20 % jitter.",
        probes=(*_UNANSWERED, "reconnect-refused"),
    ),
    _of_reconnects(
        id="KIP-144/2",
        text="Waits at most reconnect.backoff.max.ms before connecting, and at least 80 % of it once that is reached.",
        probes=(*_UNANSWERED, "long-outage", "ten-minutes"),
    ),
    _of_reconnects(
        id="KIP-144/3",
        text="Restarts at reconnect.backoff.ms after a connection on which ApiVersions was answered.",
        probes=("reconnect-after-versions",),
    ),
    _of_reconnects(
        id="KIP-144/4", text="Does not restart the backoff after a connection that was only accepted.", probes=_CLOSED
    ),
    _of_reconnects(
        id="KIP-144/5",
        text="Waits at least the backoff before it reconnects after the loss of a connection that worked.",
        probes=("reconnect-lost", "reconnect-after-versions"),
    ),
    _of_reconnects(
        id="KIP-144/6", text="Counts the failures of each broker separately.", probes=("reconnect-two-brokers",)
    ),
    Statement(
        id="KIP-144/7",
        text="Waits the same time before each connection if only reconnect.backoff.ms is set, or (KIP text) ± 20 %.",
        settings=("reconnect.backoff.ms",),
        probes=("reconnect-constant",),
    ),
    _of_reconnects(
        id="KIP-144/8",
        text="Waits reconnect.backoff.max.ms before each connection if reconnect.backoff.ms is above it, or (KIP text) "
        "± 20 %.",
        probes=("reconnect-base-above-max",),
    ),
    _of_reconnects(id="KIP-144/9", text="Randomizes the waits before connections by ± 20 %.", probes=_UNANSWERED),
    Statement(
        id="KIP-144/10",
        text="Sets up one connection to a broker at a time, for each of its kinds of connections.",
        probes=("reconnect-silent",),
    ),
    _of_reconnects(
        id="KIP-144/11",
        text="Treats a connection that the broker closed as idle like a lost one: waits before it reconnects.",
        probes=("reconnect-idle",),
    ),
    _of_reconnects(
        id="KIP-144/12",
        text="Advances the backoff by two steps after each failed authentication, or (KIP text) by one.",
        probes=("reconnect-sasl-rejected",),
    ),
    Statement(
        id="KIP-144/13",
        text="Returns to the bootstrap addresses if no broker can be reached.",
        settings=(RECOVERY,),
        probes=("reconnect-all-lost",),
        origin="KIP-899",
    ),
    Statement(
        id="KIP-144/14",
        text="Gives up a connection that is not set up within socket.connection.setup.timeout.ms ± 20 %, which "
        "doubles up to its maximum.",
        settings=(*_RECONNECT, *_SETUP),
        probes=("reconnect-tls-stalled",),
        origin="KIP-601",
    ),
    Statement(
        id="KIP-144/15", text="Does not apply to connections between brokers.", unobservable="a client is not a broker"
    ),
)

_KIP_91 = (
    _of_delivery(
        id="KIP-91/1",
        text="Sends no batch later than delivery.timeout.ms after its creation.",
        probes=("delivery-mute", "delivery-leader-gone", *_PRODUCE_ERRORS, "delivery-throttled"),
    ),
    _of_delivery(
        id="KIP-91/2",
        text="Reports a record's outcome within delivery.timeout.ms of the batch's creation, and no failure earlier.",
        probes=("delivery-leader-gone", "delivery-mute"),
    ),
    Statement(
        id="KIP-91/3",
        text="Measures the time from the creation of the batch, not from its records or its sending.",
        roles=(_P,),
        unobservable="only the client knows when it created a batch",
    ),
    _of_delivery(
        id="KIP-91/4",
        text="Resends an unanswered batch on another connection after each request.timeout.ms, without extending "
        "delivery.timeout.ms.",
        settings=(*_DELIVERY, "request.timeout.ms"),
        probes=("delivery-mute",),
    ),
    _of_delivery(
        id="KIP-91/5",
        text="Neither cancels the request of an expired batch nor closes its connection.",
        settings=(*_DELIVERY, "request.timeout.ms"),
        probes=("delivery-mute",),
    ),
    _of_delivery(
        id="KIP-91/6", text="Ignores the response to the request of an expired batch.", probes=("delivery-late-answer",)
    ),
    _of_delivery(
        id="KIP-91/7",
        text="Has at most one request in flight if max.in.flight.requests.per.connection is 1.",
        settings=("max.in.flight.requests.per.connection",),
        probes=("in-flight-one",),
    ),
    _of_delivery(
        id="KIP-91/8",
        text="Fails the records of a partition in the order in which they were sent.",
        probes=("delivery-leader-gone", "delivery-mute"),
    ),
    _of_delivery(
        id="KIP-91/9",
        text="Rejects a delivery.timeout.ms below linger.ms + request.timeout.ms before it connects.",
        settings=(*_DELIVERY, "linger.ms", "request.timeout.ms"),
        probes=("delivery-config",),
    ),
    Statement(
        id="KIP-91/10",
        text="Raises the default of delivery.timeout.ms to linger.ms + request.timeout.ms.",
        roles=(_P,),
        unobservable="a broker does not see a client's configuration",
    ),
    Statement(
        id="KIP-91/11",
        text="Ignores retry.backoff.ms in that check.",
        roles=(_P,),
        unobservable="a broker does not see a client's configuration",
    ),
    _of_delivery(
        id="KIP-91/12",
        text="Sends a batch at most retries + 1 times, even if time is left.",
        settings=(*_DELIVERY, "retries"),
        probes=("delivery-retries-exhausted",),
    ),
    _of_delivery(
        id="KIP-91/13",
        text="Keeps batches longer than request.timeout.ms while no broker is reachable, and sends them afterwards.",
        settings=(*_DELIVERY, "request.timeout.ms"),
        probes=("delivery-long-outage",),
    ),
    _of_delivery(
        id="KIP-91/14",
        text="Retries a failing batch until delivery.timeout.ms has passed, by default.",
        probes=(*_PRODUCE_ERRORS, "long-outage", "ten-minutes"),
    ),
    Statement(
        id="KIP-91/15", text="Does not retry after a non-retriable error.", roles=(_P,), probes=("produce-no-retry",)
    ),
    _of_delivery(
        id="KIP-91/16",
        text="Counts the time during which it is throttled towards delivery.timeout.ms.",
        probes=("delivery-throttled",),
    ),
)

_INSIDE = "it happens inside the application, where a broker cannot see it"
_OF_STREAMS = "only a Kafka Streams application shows it to a broker, and no probe runs one"
_KIP_572 = tuple(
    Statement(id=f"KIP-572/{number}", text=text, roles=(_C,), unobservable=why)
    for number, (text, why) in enumerate(
        (
            ("The first timeout starts the task's task.timeout.ms, and does not fail the task.", _INSIDE),
            ("Progress clears it; a later timeout starts it again.", _INSIDE),
            ("The first timeout after task.timeout.ms fails the task, and the member leaves.", _OF_STREAMS),
            ("A task is retried at least once, even if task.timeout.ms is 0.", _INSIDE),
            ("The partitions of other tasks are committed while one fails.", _OF_STREAMS),
            ("The failed record is retried, and none is skipped.", _OF_STREAMS),
            ("Slow processing alone does not start task.timeout.ms.", _INSIDE),
            ("A timed-out call for several tasks counts for all of them.", _INSIDE),
            ("A timed-out commit counts for all its tasks, or with exactly-once aborts the transaction.", _OF_STREAMS),
            ("The global thread fails at once if task.timeout.ms is 0, and retries without a wait.", _INSIDE),
            ("The leader gives up topics after half of max.poll.interval.ms.", _OF_STREAMS),
            ("A producer's delivery timeout does not count as a timeout of a task.", _INSIDE),
            ("The setting retries has no effect.", _INSIDE),
        ),
        1,
    )
)

STATEMENTS: dict[str, Statement] = {each.id: each for each in (*_KIP_13, *_KIP_580, *_KIP_144, *_KIP_91, *_KIP_572)}

"""What the KIPs say of clients, as statements that can be looked at one by one: reference for probes, judge and report.

The numbers are those of the project's own lists of KIP-13, KIP-580, KIP-144, KIP-91 and KIP-572; statements about
brokers are left out. What is said is what Kafka's clients do, which for some is not quite what the text of the KIP has;
where both are right, the judge takes both (judge/kip*.py say where).
"""

import msgspec

from .observation import Role

_P, _C, _A = Role.PRODUCER, Role.CONSUMER, Role.ADMIN
_ANYONE = (_P, _C, _A)
_RETRY = ("retry.backoff.ms", "retry.backoff.max.ms")
_RECONNECT = ("reconnect.backoff.ms", "reconnect.backoff.max.ms")
_DELIVERY = ("delivery.timeout.ms",)

_CLOSED = ("reconnect-closed", "reconnect-reset")
_UNANSWERED = (*_CLOSED, "reconnect-silent")
_PRODUCE_ERRORS = ("produce-timed-out", "produce-not-enough-replicas", "produce-not-leader")


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """One of them.

    id: such as KIP-580/1
    text: what a client does
    roles: as what a client is used that does so
    settings: what has to be known of its configuration to say whether it does
    probes: under which it can be seen
    unobservable: why nobody can see it from outside; "" where that can be seen
    origin: the KIP that it comes from, where that is not the one in its id
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
        """Whose words they are, such as KIP-580."""
        return self.origin or self.id.partition("/")[0]


_KIP_13 = (
    Statement(
        id="KIP-13/20",
        text="Sends nothing on a connection for as long as the throttle time that an answer on it told.",
        probes=("throttle-produce", "throttle-fetch", "throttle-other", "throttle-long"),
        origin="KIP-219",
    ),
)

_KIP_580 = (
    Statement(
        id="KIP-580/1",
        text="Waits before each retry of a batch twice as long as before the last, 20 % more or less.",
        roles=(_P,),
        settings=_RETRY,
        probes=(*_PRODUCE_ERRORS, "produce-mute"),
    ),
    Statement(
        id="KIP-580/2",
        text="Waits at most retry.backoff.max.ms before a retry, and at least 80 % of it once that is reached.",
        roles=(_P,),
        settings=_RETRY,
        probes=(*_PRODUCE_ERRORS, "long-outage", "ten-minutes"),
    ),
    Statement(
        id="KIP-580/3",
        text="Waits retry.backoff.max.ms before each retry, without jitter, where retry.backoff.ms is above it.",
        roles=(_P,),
        settings=_RETRY,
        probes=("produce-base-above-max",),
    ),
    Statement(
        id="KIP-580/4",
        text="Waits the same before each retry, without jitter, where retry.backoff.ms equals its maximum.",
        roles=(_P,),
        settings=_RETRY,
        probes=("produce-constant-backoff",),
    ),
    Statement(
        id="KIP-580/5",
        text="Counts the failures of each batch for itself.",
        roles=(_P,),
        settings=_RETRY,
        probes=("produce-two-partitions",),
    ),
    Statement(
        id="KIP-580/6",
        text="Begins anew with retry.backoff.ms after a success.",
        roles=(_P,),
        settings=_RETRY,
        probes=("produce-then-success",),
    ),
    Statement(
        id="KIP-580/7",
        text="Sends a batch again without a wait where it has learnt of a new leader.",
        roles=(_P,),
        settings=_RETRY,
        probes=("produce-new-leader",),
        origin="KIP-951",
    ),
    Statement(
        id="KIP-580/8",
        text="Asks for the metadata of a topic that nobody knows with waits that double.",
        settings=_RETRY,
        probes=("metadata-unknown-topic", "metadata-leader-not-available"),
    ),
    Statement(
        id="KIP-580/9",
        text="Asks for metadata again after lost connections with waits that double, and those for the reconnect.",
        settings=(*_RETRY, *_RECONNECT),
        probes=("metadata-disconnect",),
    ),
    Statement(
        id="KIP-580/10",
        text="Looks for a coordinator, and commits, again with waits that double.",
        roles=(_C,),
        settings=_RETRY,
        probes=("coordinator-lookup-error", "commit-error"),
    ),
    Statement(
        id="KIP-580/11",
        text="Sends heartbeats that failed again with waits that double.",
        roles=(_C,),
        settings=_RETRY,
        probes=("heartbeat-error",),
    ),
    Statement(
        id="KIP-580/12",
        text="Joins a group again after retry.backoff.ms each time, without jitter.",
        roles=(_C,),
        settings=("retry.backoff.ms",),
        probes=("join-error",),
    ),
    Statement(
        id="KIP-580/13",
        text="Asks for offsets again after retry.backoff.ms each time; or, as the KIP has it, with waits that double.",
        roles=(_C,),
        settings=_RETRY,
        probes=("list-offsets-error",),
    ),
    Statement(
        id="KIP-580/14",
        text="Asks for a producer id again after retry.backoff.ms; or, as the KIP has it, with waits that double.",
        roles=(_P,),
        settings=_RETRY,
        probes=("init-producer-id-error",),
    ),
    Statement(
        id="KIP-580/15",
        text="Tries an admin call again with waits that double, each call for itself.",
        roles=(_A,),
        settings=_RETRY,
        probes=("admin-error",),
    ),
    Statement(
        id="KIP-580/16",
        text="Draws the waits before retries at random, so that clients that failed together come back apart.",
        roles=(_P,),
        settings=_RETRY,
        probes=_PRODUCE_ERRORS,
    ),
    Statement(
        id="KIP-580/17",
        text="Sends a batch that fails as often in its first second as the waits allow: 4 or 5 times by default.",
        roles=(_P,),
        settings=_RETRY,
        probes=_PRODUCE_ERRORS,
    ),
    Statement(
        id="KIP-580/18",
        text="Waits retry.backoff.ms before each retry, if it is older than KIP-580.",
        roles=(_P,),
        settings=("retry.backoff.ms",),
        probes=_PRODUCE_ERRORS,
    ),
)

_KIP_144 = (
    Statement(
        id="KIP-144/1",
        text="Waits after each failed connection twice as long as after the last, 20 % more or less.",
        settings=_RECONNECT,
        probes=(*_UNANSWERED, "reconnect-refused"),
    ),
    Statement(
        id="KIP-144/2",
        text="Waits at most reconnect.backoff.max.ms before it connects, and at least 80 % of it once that is reached.",
        settings=_RECONNECT,
        probes=(*_UNANSWERED, "long-outage", "ten-minutes"),
    ),
    Statement(
        id="KIP-144/3",
        text="Begins anew with reconnect.backoff.ms after a connection on which ApiVersions was answered.",
        settings=_RECONNECT,
        probes=("reconnect-after-versions",),
    ),
    Statement(
        id="KIP-144/4",
        text="Does not begin anew after a connection that was only accepted.",
        settings=_RECONNECT,
        probes=_CLOSED,
    ),
    Statement(
        id="KIP-144/5",
        text="Waits also before it connects again after it has lost a connection that worked.",
        settings=_RECONNECT,
        probes=("reconnect-lost", "reconnect-after-versions"),
    ),
    Statement(
        id="KIP-144/6",
        text="Counts the failures of each broker for itself.",
        settings=_RECONNECT,
        probes=("reconnect-two-brokers",),
    ),
    Statement(
        id="KIP-144/7",
        text="Waits the same each time, without jitter, where only reconnect.backoff.ms is set.",
        settings=("reconnect.backoff.ms",),
        probes=("reconnect-constant",),
    ),
    Statement(
        id="KIP-144/8",
        text="Waits reconnect.backoff.max.ms each time where reconnect.backoff.ms is above it.",
        settings=_RECONNECT,
        probes=("reconnect-base-above-max",),
    ),
    Statement(
        id="KIP-144/9",
        text="Draws the waits before connections at random from 20 % below to 20 % above.",
        settings=_RECONNECT,
        probes=_UNANSWERED,
    ),
    Statement(
        id="KIP-144/10",
        text="Begins no other connection to a broker while one is being made, for each of its kinds of connections.",
        probes=("reconnect-silent",),
    ),
    Statement(
        id="KIP-144/11",
        text="Takes a connection that the broker closed as idle for a lost one: waits before it connects again.",
        settings=_RECONNECT,
        probes=("reconnect-idle",),
    ),
    Statement(
        id="KIP-144/12",
        text="Waits longer by two steps after each failed authentication.",
        unobservable="it takes SASL, which no probe sets up",
    ),
    Statement(
        id="KIP-144/13",
        text="Goes back to the bootstrap addresses where no broker can be reached.",
        unobservable="the bootstrap addresses of a probe are those of its brokers: both look the same",
        origin="KIP-899",
    ),
    Statement(
        id="KIP-144/14",
        text="Gives up a connection that is not set up within 8 to 12 s, later 30 s.",
        unobservable="over plain TCP the kernel sets connections up, whatever the broker does",
        origin="KIP-601",
    ),
    Statement(
        id="KIP-144/15",
        text="Does nothing of this between brokers.",
        unobservable="no client is a broker",
    ),
)

_KIP_91 = (
    Statement(
        id="KIP-91/1",
        text="Sends no batch later than delivery.timeout.ms after it was made.",
        roles=(_P,),
        settings=_DELIVERY,
        probes=("delivery-mute", "delivery-leader-gone", *_PRODUCE_ERRORS, "delivery-throttled"),
    ),
    Statement(
        id="KIP-91/2",
        text="Tells what became of a record by delivery.timeout.ms after its batch was made, and fails none before.",
        roles=(_P,),
        settings=_DELIVERY,
        probes=("delivery-leader-gone", "delivery-mute"),
    ),
    Statement(
        id="KIP-91/3",
        text="Counts the time from when a batch is made, not from its records or its sending.",
        roles=(_P,),
        unobservable="when a batch was made is known to the client alone",
    ),
    Statement(
        id="KIP-91/4",
        text="Sends a batch again that nobody answers, on another connection after each request.timeout.ms, and does "
        "not keep it longer for that.",
        roles=(_P,),
        settings=(*_DELIVERY, "request.timeout.ms"),
        probes=("delivery-mute",),
    ),
    Statement(
        id="KIP-91/5",
        text="Leaves a request alone whose batch has run out of time, and its connection.",
        roles=(_P,),
        settings=(*_DELIVERY, "request.timeout.ms"),
        probes=("delivery-mute",),
    ),
    Statement(
        id="KIP-91/6",
        text="Ignores the answer to a request whose batch has run out of time.",
        roles=(_P,),
        settings=_DELIVERY,
        probes=("delivery-late-answer",),
    ),
    Statement(
        id="KIP-91/7",
        text="Has one request on its way at most where max.in.flight.requests.per.connection is 1.",
        roles=(_P,),
        settings=("max.in.flight.requests.per.connection",),
        probes=("in-flight-one",),
    ),
    Statement(
        id="KIP-91/8",
        text="Fails the records of a partition in the order in which they were sent.",
        roles=(_P,),
        settings=_DELIVERY,
        probes=("delivery-leader-gone", "delivery-mute"),
    ),
    Statement(
        id="KIP-91/9",
        text="Refuses a delivery.timeout.ms below linger.ms + request.timeout.ms, and connects to nobody.",
        roles=(_P,),
        settings=(*_DELIVERY, "linger.ms", "request.timeout.ms"),
        probes=("delivery-config",),
    ),
    Statement(
        id="KIP-91/10",
        text="Raises a delivery.timeout.ms that nobody set to linger.ms + request.timeout.ms.",
        roles=(_P,),
        unobservable="a configuration is not seen by a broker",
    ),
    Statement(
        id="KIP-91/11",
        text="Leaves retry.backoff.ms out of that check.",
        roles=(_P,),
        unobservable="a configuration is not seen by a broker",
    ),
    Statement(
        id="KIP-91/12",
        text="Sends a batch retries + 1 times at most, even if there is time left.",
        roles=(_P,),
        settings=(*_DELIVERY, "retries"),
        probes=("delivery-retries-exhausted",),
    ),
    Statement(
        id="KIP-91/13",
        text="Keeps batches longer than request.timeout.ms while nobody can be reached, and sends them afterwards.",
        roles=(_P,),
        settings=(*_DELIVERY, "request.timeout.ms"),
        probes=("delivery-long-outage",),
    ),
    Statement(
        id="KIP-91/14",
        text="Goes on to send a batch that fails until delivery.timeout.ms is over, by default.",
        roles=(_P,),
        settings=_DELIVERY,
        probes=(*_PRODUCE_ERRORS, "long-outage", "ten-minutes"),
    ),
    Statement(
        id="KIP-91/15",
        text="Does not send again what failed for good.",
        roles=(_P,),
        probes=("produce-no-retry",),
    ),
    Statement(
        id="KIP-91/16",
        text="Lets the time of batches run while it is throttled.",
        roles=(_P,),
        settings=_DELIVERY,
        probes=("delivery-throttled",),
    ),
)

_INSIDE = "it happens within the application; a broker sees nothing of it"
_OF_STREAMS = "only a Kafka Streams application shows it to a broker, and no probe runs one"
_KIP_572 = tuple(
    Statement(id=f"KIP-572/{number}", text=text, roles=(_C,), unobservable=why)
    for number, (text, why) in enumerate(
        (
            ("The first timeout begins the time of a task, and does not fail it.", _INSIDE),
            ("A success ends that time; a later timeout begins another.", _INSIDE),
            ("A task fails with the first timeout after its time is over, and the member leaves.", _OF_STREAMS),
            ("A task is tried again once at least, even if task.timeout.ms is 0.", _INSIDE),
            ("The partitions of other tasks are committed while one fails.", _OF_STREAMS),
            ("The record that failed is tried again, and none is left out.", _OF_STREAMS),
            ("Work that is only slow begins no such time.", _INSIDE),
            ("A call for several tasks begins the time of all of them.", _INSIDE),
            ("A commit that times out begins that of all tasks in it, or with exactly-once an abort.", _OF_STREAMS),
            ("The global thread fails at once where the timeout is 0, and does not wait between tries.", _INSIDE),
            ("The leader gives up topics after half of max.poll.interval.ms.", _OF_STREAMS),
            ("A producer's delivery timeout is none of a task.", _INSIDE),
            ("The setting retries does nothing.", _INSIDE),
        ),
        1,
    )
)

STATEMENTS: dict[str, Statement] = {each.id: each for each in (*_KIP_13, *_KIP_580, *_KIP_144, *_KIP_91, *_KIP_572)}

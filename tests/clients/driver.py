"""The interface of a client driver: verbs, each of which uses the library in one way and reports the results in steps.

All clients run the same scenarios (scenarios.py) and must report the same steps. A step is a JSON object with bytes in
base64, so that clients in other languages can print one step per line.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from time import monotonic, sleep
from typing import Literal, NamedTuple, Protocol, TypeVar

import msgspec

# Far longer than any verb needs on a busy machine.
TIMEOUT_S = 120  # ends tests that hang, also on a busy machine

# After the last expected delivery of a share group, so that a further one would be noticed.
SHARE_QUIET_S = 0.5

Step = dict[str, object]
T = TypeVar("T")


class Row(msgspec.Struct, frozen=True, omit_defaults=False):
    """One record, as produced and as read back."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int  # ms


class Round(msgspec.Struct, frozen=True):
    """One transaction: its records, and how it ends."""

    rows: list[Row]
    end: Literal["commit", "abort"]


class Given(msgspec.Struct, frozen=True):
    """The arguments of a verb; each verb uses some of them."""

    topic: str = ""
    output: str = ""  # the topic to which a consumer of `topic` produces
    partitions: int = 1
    group: str = ""
    transactional_id: str = ""
    rows: list[Row] = []
    rounds: list[Round] = []
    count: int = 0
    size: int = 0
    acks: Literal["0", "1", "all"] = "all"
    compression: str = "none"
    idempotent: bool = False
    isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    protocol: Literal["classic", "consumer"] = "classic"
    assignor: str = "range"
    entity: dict[str, str | None] = {}  # of a quota: names by type; None for the default entity
    key: str = ""  # of a quota
    acknowledge: Literal["accept", "release", "release-always", "reject"] = "accept"  # of first deliveries, or of all
    members: int = 1  # of a share group
    properties: dict[str, str] = {}  # of the client, with the names of the Java client


Verb = Callable[[str, Given], Iterable[Step]]


def verbs(*functions: Verb) -> dict[str, Verb]:
    """Return the functions by their names."""
    return {function.__name__: function for function in functions}


def as_json(value: object) -> object:
    """Return a value after encoding to and from JSON: bytes become base64, tuples become lists."""
    return msgspec.json.decode(msgspec.json.encode(value))


class Driver(Protocol):
    """One version of one client library."""

    @property
    def name(self) -> str:
        """Short name of the library."""

    @property
    def unsupported(self) -> Mapping[str, str]:
        """Scenarios that the library cannot run, with the reason."""

    def version(self) -> str:
        """Return the version of the library."""

    def missing(self) -> str | None:
        """Return why the library cannot run here; None if it can."""

    def run(self, bootstrap: str, verb: str, given: Given) -> list[object]:
        """Return the steps of one verb."""


class InProcess(NamedTuple):
    """A Python client. Each verb is a function of the bootstrap address and its arguments."""

    name: str
    version: Callable[[], str]
    verbs: Mapping[str, Callable[[str, Given], Iterable[Step]]]
    unsupported: Mapping[str, str]

    def missing(self) -> str | None:
        return None

    def run(self, bootstrap: str, verb: str, given: Given) -> list[object]:
        return [as_json(step) for step in self.verbs[verb](bootstrap, given)]


def until(fetch: Callable[[], T], expected: T) -> T:
    """Call `fetch` until it returns `expected`; return the last result: brokers apply changes one by one."""
    deadline = monotonic() + TIMEOUT_S / 3
    while (result := fetch()) != expected and monotonic() < deadline:
        sleep(0.05)
    return result


# -- share groups ------------------------------------------------------------------------------------------------------


class ShareConsumer(Protocol):
    """A member of a share group that acknowledges each record itself."""

    def poll(self, acknowledge: Callable[[str], str]) -> None:
        """Acknowledge the records of one poll as `acknowledge(value)` decides: accept, release or reject."""

    def close(self) -> None:
        """Close it as an application would."""


def share(given: Given, join: Callable[[], ShareConsumer]) -> Iterable[Step]:
    """Poll until `count` records were delivered, and then for a while; report the deliveries of each value."""
    deliveries: dict[str, int] = {}

    def acknowledge(value: str) -> str:
        deliveries[value] = deliveries.get(value, 0) + 1
        if given.acknowledge == "release-always":
            return "release"
        return given.acknowledge if deliveries[value] == 1 else "accept"

    consumers = [join() for _ in range(given.members)]
    try:
        deadline, quiet = monotonic() + TIMEOUT_S, 0.0
        while quiet < SHARE_QUIET_S:
            assert monotonic() < deadline, f"expected {given.count} deliveries, got {deliveries}"
            started = monotonic()
            for consumer in consumers:
                consumer.poll(acknowledge)
            quiet = quiet + monotonic() - started if sum(deliveries.values()) >= given.count else 0.0
    finally:
        for consumer in consumers:
            consumer.close()
    yield {"deliveries": deliveries}


# -- groups ------------------------------------------------------------------------------------------------------------


class Member(Protocol):
    """A consumer that has subscribed to a topic in a group."""

    def poll(self) -> None:
        """Run its part of the protocol for a moment; only wait if the library does this in the background."""

    def assigned(self) -> set[int]:
        """Return its partitions."""

    def revocations(self) -> int:
        """Return how often partitions were revoked."""

    def close(self) -> None:
        """Close it as an application would."""


def settle(members: Collection[Member], partitions: int) -> list[int]:
    """Poll until every partition is assigned once and every member has some; return the count of each member."""
    deadline = monotonic() + TIMEOUT_S
    held_since: float | None = None
    while held_since is None or monotonic() < held_since + 0.3:
        assert monotonic() < deadline, (
            f"partitions are not all assigned: {[sorted(member.assigned()) for member in members]}"
        )
        for member in members:
            member.poll()
        shares = [member.assigned() for member in members]
        shared_out = sorted(partition for share in shares for partition in share) == list(range(partitions))
        if not shared_out or not all(shares):
            held_since = None
        elif held_since is None:
            held_since = monotonic()
    return sorted(len(member.assigned()) for member in members)


def rebalance(given: Given, join: Callable[[str | None], Member]) -> Iterable[Step]:
    """Start one member; let a second one join and leave."""
    first = join(None)
    try:
        yield {"members": 1, "partitions": settle([first], given.partitions)}
        second = join(None)
        try:
            yield {"members": 2, "partitions": settle([first, second], given.partitions)}
        finally:
            second.close()
        yield {"members": 1, "partitions": settle([first], given.partitions)}
    finally:
        first.close()


def restart_static_member(given: Given, join: Callable[[str | None], Member]) -> Iterable[Step]:
    """Restart one of two static members: it gets its partitions back, and the other one loses none."""
    stays, restarted = join("stays"), join("restarted")
    try:
        shares = settle([stays, restarted], given.partitions)
        before, revocations = restarted.assigned(), stays.revocations()
        restarted.close()
        restarted = join("restarted")
        settle([stays, restarted], given.partitions)
        kept, others_revocations = restarted.assigned() == before, stays.revocations() - revocations
        yield {"partitions": shares, "kept": kept, "revocations_of_the_other": others_revocations}
    finally:
        restarted.close()
        stays.close()

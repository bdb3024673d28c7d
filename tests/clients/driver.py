"""What a driver of a client library is: verbs, each of which does one thing with it and tells what came of it in steps.

All clients are asked for the same (see scenarios.py) and must give the same steps. A step is a JSON object, with bytes
in base64, so that clients in other languages say it in a line of their own.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from time import monotonic, sleep
from typing import Literal, NamedTuple, Protocol, TypeVar

import msgspec

# Far longer than any of this takes on a busy machine; what takes longer hangs.
TIMEOUT_S = 30

Step = dict[str, object]
T = TypeVar("T")


class Row(msgspec.Struct, frozen=True, omit_defaults=False):
    """One record, as it is given to a client and as the client gives it back."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int  # ms


class Round(msgspec.Struct, frozen=True):
    """One transaction: what is produced in it, and how it ends."""

    rows: list[Row]
    end: Literal["commit", "abort"]


class Given(msgspec.Struct, frozen=True):
    """What a verb works with; each takes what it needs of it."""

    topic: str = ""
    output: str = ""  # the topic that is produced to by whoever consumes from `topic`
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
    entity: dict[str, str | None] = {}  # of a quota: names by type, None for the default one
    key: str = ""  # of a quota
    properties: dict[str, str] = {}  # of the client, in a Java one's own words


def as_json(value: object) -> object:
    """What it is after a way through JSON: bytes in base64, tuples as lists."""
    return msgspec.json.decode(msgspec.json.encode(value))


class Driver(Protocol):
    """One version of one client library."""

    @property
    def name(self) -> str:
        """Of the library, short."""

    @property
    def unsupported(self) -> Mapping[str, str]:
        """Scenarios that it has no means for, with the reason."""

    def version(self) -> str:
        """Of the library."""

    def missing(self) -> str | None:
        """Why it cannot be run here; None if it can."""

    def run(self, bootstrap: str, verb: str, given: Given) -> list[object]:
        """The steps of one verb."""


class InProcess(NamedTuple):
    """A Python client. Its verbs are functions of the bootstrap address and what is given."""

    name: str
    version: Callable[[], str]
    verbs: Mapping[str, Callable[[str, Given], Iterable[Step]]]
    unsupported: Mapping[str, str]

    def missing(self) -> str | None:
        return None

    def run(self, bootstrap: str, verb: str, given: Given) -> list[object]:
        return [as_json(step) for step in self.verbs[verb](bootstrap, given)]


def until(ask: Callable[[], T], wanted: T) -> T:
    """Asks until the answer is `wanted`, and returns the last answer: brokers take in changes of topics one by one."""
    deadline = monotonic() + TIMEOUT_S / 3
    while (answer := ask()) != wanted and monotonic() < deadline:
        sleep(0.05)
    return answer


# -- groups ------------------------------------------------------------------------------------------------------------


class Member(Protocol):
    """A consumer that has subscribed to a topic in a group."""

    def poll(self) -> None:
        """Lets it do its part of the protocol for a moment, or waits a moment if it does it by itself."""

    def assigned(self) -> set[int]:
        """Its partitions now."""

    def revocations(self) -> int:
        """How often partitions were taken from it."""

    def close(self) -> None:
        """Ends it as an application would."""


def settle(members: Collection[Member], partitions: int) -> list[int]:
    """Polls until each partition is with one member and no member without; returns how many each has."""
    deadline = monotonic() + TIMEOUT_S
    held_since: float | None = None
    while held_since is None or monotonic() < held_since + 0.3:
        assert monotonic() < deadline, f"not shared out: {[sorted(member.assigned()) for member in members]}"
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
    """One member, a second one joins, and leaves."""
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
    """Of two members with instance ids one is restarted: it has its partitions again, and the other never lost any."""
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

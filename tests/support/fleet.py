"""An artificial journal of a fleet: hosts that sometimes fail to produce and to connect, each with its own backoff.

Times are milliseconds after noon. Most of the journal is successful traffic between the failures.
"""

from collections.abc import Callable, Iterator
from itertools import count
from random import Random

from msgspec.structs import replace

from sluice.journal_events import AnyEvent, ConnectionClosed, ConnectionOpened, Request, TopicPartition

NOON_NS = 1_700_049_600_000_000_000
_MS = 1_000_000
Waits = Callable[[float, int], float]  # of the base and the number of retries
POLICIES: dict[str, Waits] = {
    "exponential": lambda base, retry: min(1000.0, base * 2**retry),
    "constant": lambda base, _: base,
    "linear": lambda base, retry: base * (retry + 1),
    "at once": lambda _, __: 1.0,
}


class HostJournal:
    """The journal events of one host."""

    def __init__(self, address: str, client_id: str, first_connection: int) -> None:
        self.events: list[AnyEvent] = []
        self._client = {
            "broker": 1, "listener": "PLAINTEXT", "client_id": client_id, "software_name": "lib",
            "software_version": "1.0", "principal": "User:ANONYMOUS",
        }  # fmt: skip
        self._address = address
        self._connections = count(first_connection)
        self._correlation = count(1)

    def opened(self, at_ms: float) -> int:
        number = next(self._connections)
        named = {**self._client, "client_id": "", "software_name": "", "software_version": ""}
        self.events.append(ConnectionOpened(**self._of(number, at_ms, named)))  # type: ignore[arg-type]  # its fields
        return number

    def closed(self, number: int, at_ms: float, *, by_client: bool = False) -> None:
        fields = self._of(number, at_ms, self._client)
        self.events.append(ConnectionClosed(**fields, by_client=by_client, reason=""))  # type: ignore[arg-type]  # same

    def request(self, number: int, at_ms: float, api: str, *, sequence: int = -1, errors: tuple[int, ...] = ()) -> None:
        """Add a request that arrives at this time and is answered after 4 ms."""
        key = "" if api != "Produce" else f"orders-0@{4000 + number // 1000}.0.{sequence}"
        partition = TopicPartition(
            topic="orders", partition=0, producer_id=4000 + number // 1000, producer_epoch=0, base_sequence=sequence
        )
        received_ns = NOON_NS + round(at_ms * _MS)
        answered_ns = received_ns + 4 * _MS
        event = Request(
            **self._of(number, at_ms + 4, self._client),  # type: ignore[arg-type]  # as above
            api=api,
            api_key={"Produce": 0, "Metadata": 3, "ApiVersions": 18}[api],
            version=9,
            correlation_id=next(self._correlation),
            received_ns=received_ns,
            started_ns=received_ns,
            answered_ns=answered_ns,
            written_ns=answered_ns,
            request_bytes=100,
            response_bytes=50,
            partitions=[partition] if api == "Produce" else [],
            partitions_left_off=0,
            group_id="",
            transactional_id="",
            attempt_key=key,
            error_codes=list(errors),
            throttle_time_ms=0,
            rule_id="",
        )
        self.events.append(event)

    def _of(self, number: int, at_ms: float, client: dict[str, object]) -> dict[str, object]:
        peer = f"{self._address}:{40000 + number % 20000}"
        return {**client, "seq": 0, "at_ns": NOON_NS + round(at_ms * _MS), "connection": number, "peer": peer}


def host(number: int, random: Random) -> HostJournal:
    """Return the journal of one host, in which first a batch and later the connection fail for a while."""
    policy = list(POLICIES.values())[number % len(POLICIES)]
    journal = HostJournal(f"10.0.{number // 250}.{number % 250 + 1}", f"shop-{number}", 1000 * number + 1)
    sequences = count()
    at_ms = 20.0 + random.uniform(0, 50)
    connection = journal.opened(at_ms)
    journal.request(connection, at_ms + 1, "ApiVersions")
    at_ms = _work(journal, connection, at_ms + 10, 40, sequences)
    at_ms = _refused(journal, connection, at_ms, policy, next(sequences), random)
    at_ms = _work(journal, connection, at_ms, 200, sequences)
    at_ms += 100_000  # longer than the gap that ends a failure span
    journal.closed(connection, at_ms)
    connection, at_ms = _reconnected(journal, at_ms, policy, random)
    _work(journal, connection, at_ms, 20, sequences)
    return journal


def _work(journal: HostJournal, connection: int, at_ms: float, batches: int, sequences: Iterator[int]) -> float:
    for _ in range(batches):
        journal.request(connection, at_ms, "Produce", sequence=next(sequences))
        at_ms += 10
    return at_ms


def _refused(
    journal: HostJournal, connection: int, at_ms: float, policy: Waits, sequence: int, random: Random
) -> float:
    for retry in range(8):
        journal.request(connection, at_ms, "Produce", sequence=sequence, errors=(19,))
        at_ms += 4 + policy(100.0, retry) * random.uniform(0.9, 1.1)
    journal.request(connection, at_ms, "Produce", sequence=sequence)
    return at_ms + 10


def _reconnected(journal: HostJournal, at_ms: float, policy: Waits, random: Random) -> tuple[int, float]:
    for retry in range(6):
        at_ms += policy(50.0, retry) * random.uniform(0.9, 1.1)
        number = journal.opened(at_ms)
        at_ms += 2
        journal.closed(number, at_ms)
    at_ms += policy(50.0, 6)
    number = journal.opened(at_ms)
    journal.request(number, at_ms + 1, "ApiVersions")
    return number, at_ms + 10


def fleet(hosts: int, seed: int = 1) -> list[AnyEvent]:
    """Return the journal of `hosts` hosts in time order."""
    random = Random(seed)
    events = [event for number in range(hosts) for event in host(number, random).events]
    events.sort(key=lambda event: event.at_ns)
    return [_numbered(event, seq) for seq, event in enumerate(events, 1)]


def _numbered(event: AnyEvent, seq: int) -> AnyEvent:
    return replace(event, seq=seq)

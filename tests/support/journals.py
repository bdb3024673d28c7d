"""Handmade journals of connections, requests and changes of state with given times."""

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate, count

import msgspec

from sluice.journal_events import (
    AnyEvent,
    ConnectionClosed,
    ConnectionOpened,
    Fault,
    FetchedRecords,
    GroupState,
    ProducedBatch,
    Request,
    Throttle,
    TopicPartition,
    TransactionState,
    Value,
)
from sluice.protocol.apis import API_KEYS

_KEYS = {api.name: key for key, api in API_KEYS.items()}
_NS_PER_MS = 1_000_000
BEGAN_MS = 1_700_000_000_000


def ns(at_ms: float) -> int:
    """Return the time `at_ms` after the start."""
    return BEGAN_MS * _NS_PER_MS + round(at_ms * _NS_PER_MS)


class Journal:
    """Journal events of a client, added in any order; `events` sorts them by time and numbers them.

    A journal made by `beside` adds events of another client to the same journal.
    """

    def __init__(self, *, client_id: str = "app", software: tuple[str, str] = ("", ""), host: str = "10.0.0.1") -> None:
        self.client_id, self.software, self.host = client_id, software, host
        self._events: list[AnyEvent] = []
        self._connections = count(1)
        self._latest = 1  # the connection of requests that name none

    def beside(self, *, client_id: str, software: tuple[str, str] = ("", ""), host: str = "10.0.0.1") -> "Journal":
        other = Journal(client_id=client_id, software=software, host=host)
        other._events, other._connections = self._events, self._connections
        other._latest = 1000 + next(self._connections)
        return other

    @property
    def events(self) -> list[AnyEvent]:
        # A broker records the request in flight just before the end of its connection.
        found = sorted(self._events, key=lambda event: (event.at_ns, isinstance(event, ConnectionClosed)))
        return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(found, 1)]

    @property
    def ndjson(self) -> bytes:
        return b"".join(msgspec.json.encode(event) + b"\n" for event in self.events)

    def connection(
        self,
        at_ms: float,
        until_ms: float | None = None,
        *,
        by_client: bool = False,
        broker: int = 1,
        port: int | None = None,
        answers: bool = False,
        listener: str = "PLAINTEXT",
        names: bool = True,
        reason: str = "",
    ) -> int:
        """Add a connection, which closes unless `until_ms` is None. `answers`: ApiVersions after 1 ms."""
        number = self._latest = next(self._connections)
        peer = f"{self.host}:{40000 + number if port is None else port}"
        unnamed = {
            **self._identity(number, broker, peer),
            "listener": listener,
            "client_id": "",
            "software_name": "",
            "software_version": "",
        }
        self._events.append(ConnectionOpened(seq=self._seq, at_ns=ns(at_ms), **unnamed))  # type: ignore[arg-type]
        if answers:
            self.request("ApiVersions", at_ms + 0.5, at_ms + 1, connection=number, broker=broker, peer=peer)
        if until_ms is not None:
            identity = self._identity(number, broker, peer) if answers or not names else unnamed
            end = ConnectionClosed(seq=self._seq, at_ns=ns(until_ms), by_client=by_client, reason=reason, **identity)  # type: ignore[arg-type]
            self._events.append(end)
        return number

    def request(
        self,
        api: str,
        at_ms: float,
        answered_ms: float | None = None,
        *,
        ended_ms: float | None = None,
        connection: int | None = None,
        broker: int = 1,
        version: int = 9,
        partitions: Iterable[TopicPartition] = (),
        group_id: str = "",
        transactional_id: str = "",
        errors: Iterable[int] = (),
        throttle_ms: int = 0,
        request_bytes: int = 100,
        response_bytes: int = 50,
        peer: str = "",
        rule_id: str = "",
        sent: Mapping[str, Value] | None = None,
        returned: Mapping[str, Value] | None = None,
    ) -> None:
        """Add a request that is answered at `answered_ms`, or whose connection ends at `ended_ms`."""
        partitions = list(partitions)
        end_ms = answered_ms if answered_ms is not None else ended_ms
        assert end_ms is not None, "a request needs a response or the end of its connection"
        answered_ns = None if answered_ms is None else ns(answered_ms)
        number = self._latest if connection is None else connection
        self._events.append(
            Request(
                seq=self._seq,
                at_ns=ns(end_ms),
                **self._identity(number, broker, peer or f"{self.host}:{40000 + number}"),  # type: ignore[arg-type]
                api=api,
                api_key=_KEYS[api],
                version=version,
                correlation_id=self._seq,
                received_ns=ns(at_ms),
                started_ns=ns(at_ms),
                answered_ns=answered_ns,
                written_ns=answered_ns,
                request_bytes=request_bytes,
                response_bytes=0 if answered_ms is None else response_bytes,
                partitions=partitions,
                partitions_left_off=0,
                group_id=group_id,
                transactional_id=transactional_id,
                attempt_key=",".join(map(_attempt_key, partitions)),
                error_codes=list(errors),
                throttle_time_ms=throttle_ms,
                rule_id=rule_id,
                sent=dict(sent or {}),
                returned=dict(returned or {}),
            )
        )

    def batch(
        self,
        at_ms: float,
        answered_ms: float | None = None,
        *,
        sequence: int = -1,
        topic: str = "t",
        partition: int = 0,
        batch: ProducedBatch | None = None,
        errors: Iterable[int] = (),
        connection: int | None = None,
        broker: int = 1,
        ended_ms: float | None = None,
        request_bytes: int = 100,
        records: Iterable[str] = (),
        version: int = 9,
        throttle_ms: int = 0,
        transactional_id: str = "",
        sent: Mapping[str, Value] | None = None,
    ) -> None:
        """Add a Produce request with one batch: of an idempotent producer with `sequence`, or of hashed `records`."""
        producer_id, epoch = (-1, -1) if sequence < 0 else (7, 0)
        one = TopicPartition(
            topic=topic,
            partition=partition,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            record_hashes=list(records),
            batch=batch,
        )
        self.request(
            "Produce",
            at_ms,
            answered_ms,
            ended_ms=ended_ms,
            partitions=[one],
            errors=errors,
            connection=connection,
            broker=broker,
            request_bytes=request_bytes,
            version=version,
            throttle_ms=throttle_ms,
            transactional_id=transactional_id,
            sent=sent,
        )

    def throttle(self, at_ms: float, throttle_ms: int, *, api: str = "Produce", connection: int | None = None) -> None:
        number = self._latest if connection is None else connection
        self._events.append(
            Throttle(
                seq=self._seq,
                at_ns=ns(at_ms),
                **self._identity(number, 1, f"{self.host}:{40000 + number}"),  # type: ignore[arg-type]
                api=api,
                version=9,
                correlation_id=1,
                quota=api if api in ("Produce", "Fetch") else "Request",
                throttle_time_ms=throttle_ms,
            )
        )

    def fault(self, at_ms: float, *, api: str = "Produce", connection: int | None = None) -> None:
        number = self._latest if connection is None else connection
        self._events.append(
            Fault(
                seq=self._seq,
                at_ns=ns(at_ms),
                **self._identity(number, 1, f"{self.host}:{40000 + number}"),  # type: ignore[arg-type]
                api=api,
                version=9,
                correlation_id=1,
                rule_id="fault-1",
                action="error",
            )
        )

    def group_state(
        self,
        at_ms: float,
        before: str,
        after: str,
        *,
        group_id: str = "g",
        group_type: str = "classic",
        generation: int = 1,
        members: int = 1,
    ) -> None:
        self._events.append(
            GroupState(
                seq=self._seq,
                at_ns=ns(at_ms),
                broker=1,
                group_id=group_id,
                group_type=group_type,
                before=before,
                after=after,
                generation=generation,
                members=members,
            )
        )

    def transaction_state(
        self,
        at_ms: float,
        before: str,
        after: str,
        *,
        transactional_id: str = "tx",
        producer_id: int = 7,
        producer_epoch: int = 0,
    ) -> None:
        self._events.append(
            TransactionState(
                seq=self._seq,
                at_ns=ns(at_ms),
                broker=1,
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                before=before,
                after=after,
            )
        )

    def of_cluster(self, kind: Callable[..., AnyEvent], at_ms: float, *, broker: int = -1, **fields: object) -> None:
        """Add an event without a client, such as a LeaderChange."""
        self._events.append(kind(seq=self._seq, at_ns=ns(at_ms), broker=broker, **fields))

    def of_client(self, kind: Callable[..., AnyEvent], at_ms: float, *, broker: int = 1, **fields: object) -> None:
        """Add another event of the latest connection, such as a Fault with its fields."""
        identity = self._identity(self._latest, broker, f"{self.host}:{40000 + self._latest}")
        self._events.append(kind(seq=self._seq, at_ns=ns(at_ms), **{**identity, **fields}))

    @property
    def _seq(self) -> int:
        return len(self._events) + 1

    def _identity(self, connection: int, broker: int, peer: str) -> dict[str, object]:
        return {
            "broker": broker,
            "connection": connection,
            "listener": "PLAINTEXT",
            "peer": peer,
            "client_id": self.client_id,
            "software_name": self.software[0],
            "software_version": self.software[1],
            "principal": "User:ANONYMOUS",
        }


def _attempt_key(one: TopicPartition) -> str:
    producer = "" if one.producer_id < 0 else f"@{one.producer_id}.{one.producer_epoch}.{one.base_sequence}"
    return f"{one.topic}-{one.partition}{producer}"


def fetched(topic: str, partition: int, offset: int, nbytes: int, high_watermark: int) -> TopicPartition:
    """Return a partition of a Fetch request and its response, without transactions."""
    returned = FetchedRecords(bytes=nbytes, high_watermark=high_watermark, last_stable_offset=high_watermark)
    return TopicPartition(topic=topic, partition=partition, offset=offset, fetched=returned)


def starts(waits_ms: Iterable[float], lasting_ms: float = 1.0, from_ms: float = 0.0) -> list[float]:
    """Return when attempts start that last `lasting_ms` each, with these waits between them."""
    return list(accumulate((lasting_ms + wait_ms for wait_ms in waits_ms), initial=from_ms))


def closed_connections(waits_ms: Iterable[float], **journal: str) -> Journal:
    """Return the journal of a client whose connections close after 1 ms, with these waits between them."""
    made = Journal(**journal)  # type: ignore[arg-type]
    for at_ms in starts(waits_ms):
        made.connection(at_ms, at_ms + 1)
    return made


def failed_batch(waits_ms: Iterable[float], *, error: int = 19) -> Journal:
    """Return the journal of a producer whose batch fails after 1 ms each time, with these waits between attempts."""
    made = Journal()
    for at_ms in starts(waits_ms):
        made.batch(at_ms, at_ms + 1, sequence=0, errors=[error])
    return made

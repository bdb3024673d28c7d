"""Handmade journals of connections and requests with given times, and observations made from them."""

from collections.abc import Iterable, Mapping
from itertools import accumulate

from sluice.audit.judge.model.observation import Callback, Observation, Role, SubjectInfo
from sluice.journal_events import AnyEvent, ConnectionClosed, ConnectionOpened, Request, TopicPartition
from sluice.protocol.apis import API_KEYS

SETTINGS: Mapping[str, float | str | bool] = {
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1000,
    "delivery.timeout.ms": 5000,
    "request.timeout.ms": 2000,
    "linger.ms": 0,
    "heartbeat.interval.ms": 0,
}
_KEYS = {api.name: key for key, api in API_KEYS.items()}
_NS_PER_MS = 1_000_000
_BEGAN_NS = 1_700_000_000_000 * _NS_PER_MS


def ns(at_ms: float) -> int:
    """Return the time `at_ms` after the start."""
    return _BEGAN_NS + round(at_ms * _NS_PER_MS)


class Journal:
    """Journal events, added in any order; `events` sorts them by time."""

    def __init__(self, *, client_id: str = "app", software: tuple[str, str] = ("", ""), host: str = "10.0.0.1") -> None:
        self.client_id, self.software, self.host = client_id, software, host
        self._events: list[AnyEvent] = []
        self._connections = 0

    @property
    def events(self) -> list[AnyEvent]:
        return sorted(self._events, key=lambda event: event.at_ns)

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
    ) -> int:
        """Add a connection, which closes unless `until_ms` is None. `answers`: ApiVersions after 1 ms."""
        self._connections += 1
        number = self._connections
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
            end = ConnectionClosed(seq=self._seq, at_ns=ns(until_ms), by_client=by_client, reason="", **identity)  # type: ignore[arg-type]
            self._events.append(end)
        return number

    def request(
        self,
        api: str,
        at_ms: float,
        answered_ms: float | None = None,
        *,
        ended_ms: float | None = None,
        connection: int = 1,
        broker: int = 1,
        version: int = 9,
        partitions: Iterable[TopicPartition] = (),
        group_id: str = "",
        errors: Iterable[int] = (),
        throttle_ms: int = 0,
        request_bytes: int = 100,
        peer: str = "",
        rule_id: str = "",
    ) -> None:
        """Add a request that is answered at `answered_ms`, or whose connection ends at `ended_ms`."""
        partitions = list(partitions)
        end_ms = answered_ms if answered_ms is not None else ended_ms
        assert end_ms is not None, "a request needs a response or the end of its connection"
        answered_ns = None if answered_ms is None else ns(answered_ms)
        self._events.append(
            Request(
                seq=self._seq,
                at_ns=ns(end_ms),
                **self._identity(connection, broker, peer or f"{self.host}:{40000 + connection}"),  # type: ignore[arg-type]
                api=api,
                api_key=_KEYS[api],
                version=version,
                correlation_id=self._seq,
                received_ns=ns(at_ms),
                started_ns=ns(at_ms),
                answered_ns=answered_ns,
                written_ns=answered_ns,
                request_bytes=request_bytes,
                response_bytes=0 if answered_ms is None else 50,
                partitions=partitions,
                partitions_left_off=0,
                group_id=group_id,
                transactional_id="",
                attempt_key=",".join(f"{each.topic}-{each.partition}" for each in partitions),
                error_codes=list(errors),
                throttle_time_ms=throttle_ms,
                rule_id=rule_id,
            )
        )

    def batch(
        self,
        at_ms: float,
        answered_ms: float | None = None,
        *,
        sequence: int = -1,
        partition: int = 0,
        errors: Iterable[int] = (),
        connection: int = 1,
        broker: int = 1,
        ended_ms: float | None = None,
        request_bytes: int = 100,
        records: Iterable[str] = (),
        version: int = 9,
        throttle_ms: int = 0,
    ) -> None:
        """Add a Produce request with one batch: of an idempotent producer with `sequence`, or of hashed `records`."""
        producer_id, epoch = (-1, -1) if sequence < 0 else (7, 0)
        one = TopicPartition(
            topic="t",
            partition=partition,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            record_hashes=list(records),
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
        )

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


def observed(
    probe: str,
    events: list[AnyEvent],
    *,
    role: Role = Role.PRODUCER,
    settings: Mapping[str, float | str | bool] | None = None,
    kips: Iterable[str] = (),
    otherwise: Iterable[str] = (),
    before: Iterable[str] = (),
    lacks: Iterable[str] = (),
    is_command: bool = False,
    callbacks: Iterable[Callback] = (),
    repetition: int = 0,
    fault_ms: tuple[float, float] | None = None,
    ended_ms: float | None = None,
    lag_ms: float = 0.0,
    virtual: bool = True,
    problem: str = "",
) -> Observation:
    """Return the observation of a run with this journal."""
    subject = SubjectInfo(
        name="app",
        role=role,
        settings=dict(SETTINGS if settings is None else settings),
        kips=frozenset(kips),
        otherwise=frozenset(otherwise),
        before=frozenset(before),
        lacks=frozenset(lacks),
        is_command=is_command,
    )
    return Observation(
        probe=probe,
        subject=subject,
        repetition=repetition,
        events=events,
        callbacks=list(callbacks),
        fault_from_ns=None if fault_ms is None else ns(fault_ms[0]),
        fault_until_ns=None if fault_ms is None else ns(fault_ms[1]),
        began_ns=ns(0),
        ended_ns=max((event.at_ns for event in events), default=ns(0)) if ended_ms is None else ns(ended_ms),
        lag_ms=lag_ms,
        virtual=virtual,
        problem=problem,
    )


def callback(event: str, at_ms: float, record: int = -1, partition: int = 0) -> Callback:
    """Return a callback that a driver reports."""
    return Callback(at_ns=ns(at_ms), event=event, record=record, partition=partition)

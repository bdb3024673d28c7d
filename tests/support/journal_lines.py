"""A journal file of clients that produce at a constant rate."""

from collections.abc import Mapping

import msgspec

from sluice.journal_events import Request

_MS = 1_000_000
_BEGIN_MS = 1_700_000_000_000


def journal(clients: Mapping[str, tuple[int, int]], seconds: int, brokers: int = 1) -> bytes:
    """Return events as NDJSON in time order, given each client's interval in ms and request size in bytes.

    Each client sends to the brokers in turn, with a connection to each.
    """
    rows = [
        (at_ms, number, at_ms // step_ms % brokers + 1, client_id, nbytes)
        for number, (client_id, (step_ms, nbytes)) in enumerate(clients.items())
        for at_ms in range(0, seconds * 1000, step_ms)
    ]
    events = [_request(seq, *row) for seq, row in enumerate(sorted(rows), 1)]
    return b"".join(msgspec.json.encode(event) + b"\n" for event in events)


def _request(seq: int, at_ms: int, number: int, broker: int, client_id: str, nbytes: int) -> Request:
    return produced(
        (_BEGIN_MS + at_ms) * _MS,
        seq,
        broker=broker,
        connection=100 * number + broker,
        client_id=client_id,
        request_bytes=nbytes,
    )


def produced(at_ns: int, seq: int = 1, /, **changes: object) -> Request:
    """Return the event of a Produce request that was answered at once, with these changes."""
    event = Request(
        seq=seq,
        at_ns=at_ns,
        broker=1,
        connection=1,
        listener="PLAINTEXT",
        peer="127.0.0.1:5000",
        client_id="",
        software_name="",
        software_version="",
        principal="User:ANONYMOUS",
        api="Produce",
        api_key=0,
        version=9,
        correlation_id=seq,
        received_ns=at_ns,
        started_ns=at_ns,
        answered_ns=at_ns,
        written_ns=at_ns,
        request_bytes=100,
        response_bytes=60,
        partitions=[],
        partitions_left_off=0,
        group_id="",
        transactional_id="",
        attempt_key="orders-0",
        error_codes=[],
        throttle_time_ms=0,
        rule_id="",
    )
    return msgspec.structs.replace(event, **changes)

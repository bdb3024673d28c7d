"""Lines of a journal: events of the client `shop`, at seconds after noon."""

import msgspec

from sluice.journal_events import Throttle
from tests.support.journal_lines import produced

NOON_NS = 1_700_049_600_000_000_000  # 12:00:00
NS = 1_000_000_000


def request(at_s: float, seq: int = 1, **fields: object) -> str:
    """Return a Produce event of client `shop` as JSON, answered at this second after noon, in 5 ms."""
    at_ns = NOON_NS + round(at_s * NS)
    begin_ns = at_ns - 5_000_000
    times: dict[str, object] = {"received_ns": begin_ns, "started_ns": begin_ns, "correlation_id": 1}
    usual: dict[str, object] = {"client_id": "shop", "principal": "User:alice", "attempt_key": ""}
    event = produced(at_ns, seq, request_bytes=1000, response_bytes=50, **usual, **times)
    return msgspec.json.encode(msgspec.structs.replace(event, **fields)).decode()


def throttle(at_s: float, throttle_time_ms: int) -> str:
    event = Throttle(
        seq=1,
        at_ns=NOON_NS + round(at_s * NS),
        broker=1,
        connection=1,
        listener="PLAINTEXT",
        peer="127.0.0.1:5",
        client_id="shop",
        software_name="",
        software_version="",
        principal="User:alice",
        api="Produce",
        version=9,
        correlation_id=1,
        quota="Produce",
        throttle_time_ms=throttle_time_ms,
    )
    return msgspec.json.encode(event).decode()

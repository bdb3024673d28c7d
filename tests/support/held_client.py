"""A client of the demo in virtual time that sends more than its quota, throttled by a quota manager."""

from random import Random

from sluice.cli.demo.trace import FETCH, Client, Exchange, Trace
from sluice.quotas.entity import QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig

QUOTA = 1e6  # bytes/s
STARTED_MS = 1e12


def held_client(
    kind: str,
    payload_bytes: int,
    service_ms: float,
    *,
    late_ms: float = 0.0,
    stops_ms: float = 0.0,
    enforced: float = QUOTA,
) -> Client:
    """Return 38 s of a client with one request in flight, which it sends after the previous response.

    Responses take `service_ms`, and a throttle ends up to `late_ms` late. In its first burst the client once pauses for
    `stops_ms`. The broker enforces `enforced` bytes/s, although the client's declared quota is QUOTA.
    """
    random = Random(payload_bytes)  # makes failures reproducible
    manager = ClientQuotaManager(kind, QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(QuotaEntity(client_id="bronze"), enforced)
    trace, now_ms, throttle_ms = Trace(), STARTED_MS, 0
    while now_ms < STARTED_MS + 38e3:
        sent_ms = now_ms
        now_ms += service_ms + (throttle_ms + random.uniform(0, late_ms) if throttle_ms else 0)
        if trace.payload_bytes == 30 * payload_bytes:
            now_ms += stops_ms
        throttle_ms = manager.record("", "bronze", payload_bytes, int(now_ms))
        through = payload_bytes
        if kind == FETCH and throttle_ms:
            manager.unrecord("", "bronze", payload_bytes, int(now_ms))
            through = 0
        trace.add(Exchange(sent_ms, now_ms, through, throttle_ms))
    return Client("bronze", "aiokafka", kind, QUOTA, trace)

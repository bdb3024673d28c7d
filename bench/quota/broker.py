"""A broker that records its charges: `python -m bench.quota.broker FILE ARGUMENTS...`, with those of `sluice serve`.

After the stop, FILE contains JSON:

- the charges by kind and client id, each with time, amount and throttle time; a removed charge has a negative amount
- how late the event loop's timers were, each with the CPU time of the loop's thread in between: lateness without CPU
  time is due to other processes
"""

import asyncio
import json
import sys
from pathlib import Path
from time import thread_time

from sluice.broker.server import cluster_server
from sluice.cli.main import cli
from sluice.quotas.manager import ClientQuotaManager

PROBE_S = 0.01

charges: dict[str, list[tuple[int, float, int]]] = {}
lags_ms: list[tuple[float, float]] = []

_record, _unrecord, _init = (
    ClientQuotaManager.record,
    ClientQuotaManager.unrecord,
    cluster_server.ClusterServer.__init__,
)


def record(self: ClientQuotaManager, user: str, client_id: str, value: float, now_ms: int) -> int:
    """Record a charge."""
    throttle_ms = _record(self, user, client_id, value, now_ms)
    charges.setdefault(f"{self.kind} {client_id}", []).append((now_ms, value, throttle_ms))
    return throttle_ms


def unrecord(self: ClientQuotaManager, user: str, client_id: str, value: float, now_ms: int) -> None:
    """Record the removal of a charge."""
    _unrecord(self, user, client_id, value, now_ms)
    charges.setdefault(f"{self.kind} {client_id}", []).append((now_ms, -value, 0))


def init(self: cluster_server.ClusterServer, config, clock, random, loop) -> None:  # type: ignore[no-untyped-def]  # passes its arguments on
    """Create the server and measure the loop."""
    _init(self, config, clock, random, loop)
    _probe(loop)


def _probe(loop: asyncio.AbstractEventLoop) -> None:
    due_s, worked_s = loop.time() + PROBE_S, thread_time()

    def measure() -> None:
        late_s = loop.time() - due_s
        lags_ms.append((late_s * 1e3, min(late_s, thread_time() - worked_s) * 1e3))
        _probe(loop)

    loop.call_at(due_s, measure)


def main() -> None:
    """Run the broker until it is stopped."""
    ClientQuotaManager.record = record  # type: ignore[method-assign]  # records the calls
    ClientQuotaManager.unrecord = unrecord  # type: ignore[method-assign]  # records the calls
    cluster_server.ClusterServer.__init__ = init  # type: ignore[method-assign]  # records the calls
    file = Path(sys.argv[1])
    try:
        cli(["serve", *sys.argv[2:]])
    finally:
        file.write_text(json.dumps({"charges": charges, "lags_ms": lags_ms}))


if __name__ == "__main__":
    main()

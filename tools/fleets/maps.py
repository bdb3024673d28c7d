"""Maps of no return against the simulation: cells near borders and elsewhere, for pairs of settings and models."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from sluice.fleet.map.grid import Base, axis, draw_map
from sluice.fleet.models.mix import parse_mix
from sluice.fleet.simulation.broker import BROKERS


class Pair(NamedTuple):
    fleet: str
    x: str
    y: str
    settings: tuple[str, ...] = ()
    load: float = 0.5


_LOAD = "load=0.05:0.95"
_TIMEOUT = "request.timeout.ms=1000:60000"
PAIRS = (
    Pair("java:1000", _LOAD, _TIMEOUT),
    Pair("java:1000", "requests.per.s=0.1:2", _TIMEOUT, load=0.4),
    Pair("java:1000", _LOAD, "reconnect.backoff.max.ms=100:20000", ("request.timeout.ms=5000",)),
    Pair("java:1000", _LOAD, "outage=1:60", ("request.timeout.ms=5000",)),
    Pair("java:1000", _LOAD, "backlog=1:1000", ("requests.per.s=0.2",)),
    Pair("java:1000", "outage=1:60", "reconnect.backoff.max.ms=100:20000", ("request.timeout.ms=5000",)),
    Pair("kip-580-before:1000", _LOAD, _TIMEOUT),
    Pair("aiokafka:1000", _LOAD, _TIMEOUT),
    Pair("librdkafka:1000", _LOAD, _TIMEOUT),
    Pair("java:600,aiokafka:400", _LOAD, _TIMEOUT, ("request.timeout.ms=5000",)),
)


def measure(cells: int = 10, seed: int = 0, pairs: Sequence[Pair] = PAIRS) -> None:
    """Simulate cells of each map, and print the number of those that agree within one cell."""
    agreeing = checked = 0
    for number, pair in enumerate(pairs):
        groups = parse_mix(pair.fleet, pair.settings)
        per_s = sum(group.clients * group.model.requests_per_s for group in groups)
        base = Base(groups, BROKERS["kafka"].scaled_to(per_s / pair.load), 20)
        x, y = axis("--x", pair.x), axis("--y", pair.y)
        began = time.process_time()
        draw_map(pair.fleet, base, x, y, simulated=0)
        took_s = time.process_time() - began
        found = draw_map(pair.fleet, base, x, y, simulated=cells, seed=seed + number)
        count = sum(each.agrees for each in found.checked)
        agreeing, checked = agreeing + count, checked + len(found.checked)
        print(f"{pair.fleet} {pair.x} {pair.y}: {count} of {len(found.checked)}, {took_s:.2f} s of CPU", flush=True)
        for each in found.checked:
            if not each.agrees:
                print(f"  {each.x:g}, {each.y:g}: {each.region}, simulated {each.simulated}", flush=True)
    print(f"{agreeing} of {checked} cells agree within one cell")

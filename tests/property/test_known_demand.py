"""Plans of logs whose demand is known: what is stated holds, and quotas do not throttle what they promise not to.

Each log is written twice, with different random numbers. Quotas are recommended from the first and replayed on the
second: traffic of the same clients at another time.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec
import pytest

from sluice.spark.plan import job, local_engine
from sluice.spark.plan.analysis import Limits, Settings
from sluice.spark.plan.demand import Confidence
from sluice.spark.plan.recommendation import Policy
from sluice.spark.plan.tables import FINDING, REPLAYS, finding_of, read_table
from sluice.spark.splits import splits_of
from tests.support.journal_lines import produced

LIMITS = Limits(100, 0.05)
_BEGIN_NS, _S = 1_700_000_000_000_000_000, 1_000_000_000

Sent = Iterator[tuple[float, int, int]]  # seconds, bytes, throttle time in ms
Sends = Callable[[Random], Sent]


def steady(rate: float, seconds: float = 180, begin: float = 0, per_s: float = 5, throttle_ms: int = 0) -> Sends:
    """Send requests of different sizes at random times; `rate` is in bytes/s."""

    def send(random: Random) -> Sent:
        at = begin
        while (at := at + random.expovariate(per_s)) < seconds:
            yield at, int(rate / per_s * random.uniform(0.5, 1.5)), throttle_ms if random.random() < 0.2 else 0

    return send


def bursts(rate: float, every_s: float, seconds: float = 180, *, regular: bool) -> Sends:
    """Send bursts of twenty requests."""

    def send(random: Random) -> Sent:
        at = random.uniform(0, every_s)
        while at < seconds:
            yield from ((at + number / 100, int(rate * every_s / 20), 0) for number in range(20))
            at += every_s if regular else random.expovariate(1 / every_s)

    return send


def ramp(rate: float, seconds: float = 180) -> Sends:
    """Send at a rate that grows from zero to twice `rate`."""

    def send(random: Random) -> Sent:
        for number in range(int(seconds * 10)):
            yield number / 10, int(rate / 10 * 2 * number / seconds / 10) + 1, 0

    return send


def flood(count: int, rate: float = 50_000) -> dict[str, Sends]:
    return {f"web-{number}": steady(rate * (1 + number / count)) for number in range(count)}


class Log(NamedTuple):
    clients: Mapping[str, Sends]
    demand: Mapping[str, float]  # bytes/s that is known
    bounds: Mapping[str, Confidence] = {}  # all others are uncertain or known
    default: bool = False
    warning: str = ""


LOGS = {
    "one client": Log({"only": steady(80_000)}, {"only": 80_000}),
    "three clients": Log({"a": steady(9_000), "b": steady(90_000), "c": steady(900_000)}, {"b": 90_000, "c": 900_000}),
    "nine clients have no default": Log(flood(9), {"web-0": 50_000}),
    "ten clients have one": Log(flood(10), {"web-0": 50_000}, default=True),
    "fifteen clients, and a large one": Log(
        {**flood(15), "etl": steady(5e6)}, {"web-0": 50_000, "etl": 5e6}, default=True
    ),
    "regular bursts": Log({"batch": bursts(40_000, 4, regular=True)}, {"batch": 40_000}),
    "random bursts": Log({"jobs": bursts(40_000, 3, regular=False)}, {}),
    "rare bursts": Log(
        {"nightly": bursts(1000, 80, regular=True), "a": steady(9_000)}, {"a": 9_000}, {"nightly": "irregular"}
    ),
    "a growing rate": Log({"new": ramp(50_000)}, {}),
    "thirty seconds": Log(
        {f"web-{number}": steady(50_000, seconds=30) for number in range(12)}, {}, warning="Short log: 30 s"
    ),
    "a throttled client among twelve": Log(
        {**flood(11), "slow": steady(20_000, throttle_ms=300)}, {"web-0": 50_000}, {"slow": "throttled"},
        warning="Written under a quota: the log has throttle times of 1 of 12 clients.",
    ),
    "a client that comes late": Log(
        {**flood(10), "late": steady(400_000, begin=140)}, {"web-5": 75_000}, {"late": "brief"}, default=True,
        warning="Seen briefly: 1 of 11 clients",
    ),
}  # fmt: skip


def write(file: Path, clients: Mapping[str, Sends], seed: str) -> str:
    sent = sorted((each, name) for name, sends in clients.items() for each in sends(Random(seed + name)))
    names = list(clients)
    with file.open("wb") as out:
        for seq, ((at, nbytes, throttle_ms), name) in enumerate(sent):
            event = produced(
                _BEGIN_NS + int(at * _S), seq, client_id=name, connection=names.index(name), request_bytes=nbytes,
                throttle_time_ms=throttle_ms,
            )  # fmt: skip
            out.write(msgspec.json.encode(event) + b"\n")
    return str(file)


def planned(file: str, out: Path) -> job.Plan:
    settings = Settings((), ("by-version",), ("closed",), "client-id", LIMITS)
    return job.plan([file], out, settings, Policy(), local_engine.run, lambda *_: None)


@pytest.mark.parametrize("name", LOGS)
def test_what_a_plan_states_is_true(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "write_report", lambda *_: None)  # a third of the time
    log = LOGS[name]
    found = planned(write(tmp_path / "log", log.clients, "first"), tmp_path / "plan")
    (produce,) = found.recommendations
    needs = {need.client_id: need for need in produce.overrides + produce.others}
    assert set(needs) == set(log.clients)
    bounds = {client: need.demand.confidence for client, need in needs.items() if not need.demand.is_known}
    assert bounds == (log.bounds or (dict.fromkeys(needs, "brief") if log.warning.startswith("Short") else {}))
    for client, demand in log.demand.items():
        assert needs[client].demand.rate == pytest.approx(demand, rel=max(0.1, needs[client].demand.uncertainty)), (
            client
        )
        if needs[client].demand.confidence == "known":
            assert needs[client].demand.rate == pytest.approx(demand, rel=0.1), client
    assert (produce.default is not None) is log.default
    assert [each for each in found.warnings if each.startswith(log.warning)] or not log.warning
    assert bool(found.warnings) is (bool(log.warning) or bool(log.bounds))
    assert not {need.client_id for need in produce.overrides} & set(log.bounds)
    promised = {need.client_id: float(need.recommended(produce.headroom)) for need in produce.overrides}
    if produce.default is not None:
        promised |= {need.client_id: float(produce.default) for need in produce.others if need.demand.is_known}
    for number, (client, quota) in enumerate(promised.items()):  # each alone: a quota concerns no other client
        file = write(tmp_path / f"later-{number}", {client: log.clients[client]}, "second")
        settings = Settings((quota,), ("by-version",), ("closed",), "client-id", None)
        local_engine.run(splits_of([file]), settings, tmp_path / f"again-{number}", lambda *_: None)
        (finding,) = map(finding_of, read_table(tmp_path / f"again-{number}", REPLAYS, FINDING))
        assert LIMITS.are_met(finding.outcome), finding

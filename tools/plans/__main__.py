"""Plans of 40 real producers, recorded under quotas, against the same producers without: `python -m tools.plans`.

aiokafka, confluent-kafka and, with the jars of Apache Kafka in KAFKA_LIBS, its producer run at the same time: first
without quotas, then each with a quota of 0.2 to 2 times the rate that it had. Stated lower bounds and known demands
must be true, and nothing may be recommended from bounds alone.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import msgspec

from sluice import Broker
from sluice.journal_events import AnyEvent, Request, Throttle
from sluice.spark.plan import job, local_engine
from sluice.spark.plan.analysis import Limits, Settings
from sluice.spark.plan.demand import Stated
from sluice.spark.plan.recommendation import Policy, Recommendation
from tools.plans.workloads import KINDS, workloads

_FOLDER = Path(__file__).parent
QUOTAS = (0.2, 2.0)  # of the rate without quotas
KNOWN = 0.1


async def record(seconds: int, seed: int, kinds: list[str], quotas: Mapping[str, float]) -> dict[str, list[AnyEvent]]:
    """Return the events of each client."""
    loads = [(kind, load) for kind, load in workloads(seed) if kind in kinds]
    async with Broker(config={"sluice.journal.events": 1_000_000}) as broker:
        for client_id, quota in quotas.items():
            broker.quota(client_id=client_id, produce=quota)
        for _, load in loads:
            await broker.cluster.create_topic(load.client_id)
        processes = [
            await _start(kind, broker.bootstrap, "\n".join(load.line for of, load in loads if of == kind))
            for kind in kinds
        ]
        names = [load.client_id for _, load in loads]
        for name in names:
            await broker.wait_for(Request, client_id=name, api="Produce", timeout_s=120)  # a JVM starts
        await asyncio.sleep(seconds)
        for process in processes:
            process.kill()
            await process.wait()
        found: dict[str, list[AnyEvent]] = {name: [] for name in names}
        for event in broker.journal.events():
            if isinstance(event, Request | Throttle) and event.client_id in found:
                found[event.client_id].append(event)
        # The same time of each client: a backlog that is sent at the beginning has another rate in a longer recording.
        return {name: [each for each in of if each.at_ns - of[0].at_ns <= seconds * 1e9] for name, of in found.items()}


async def _start(kind: str, bootstrap: str, lines: str) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "tools.plans.workloads", kind, bootstrap]
    if kind == "java":
        command = ["java", "-cp", os.environ["KAFKA_LIBS"] + "/*", str(_FOLDER / "Producers.java"), bootstrap]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdin is not None
    process.stdin.write(lines.encode())
    process.stdin.close()
    return process


def rate_of(events: list[AnyEvent]) -> float:
    sent = [event for event in events if isinstance(event, Request) and event.api == "Produce"]
    return sum(event.request_bytes for event in sent) / (sent[-1].at_ns - sent[0].at_ns) * 1e9


def planned(events: list[AnyEvent], folder: Path) -> Recommendation:
    folder.mkdir()
    (folder / "log").write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    settings = Settings((), ("by-version",), ("closed",), "client-id", Limits(100, 0.05))
    policy = Policy(always_default=True)
    found = job.plan([str(folder / "log")], folder / "out", settings, policy, local_engine.run, lambda *_: None)
    (recommendation,) = found.recommendations
    return recommendation


def stated(found: Recommendation) -> Stated:
    (need,) = found.overrides + found.others
    assert need.quota >= need.demand.rate or not need.demand.is_known, "required below demand"
    assert found.is_empty or need.demand.is_known, "recommended from a lower bound"
    return need.demand


def judge(name: str, demand: float, quota: float, free: Stated, limited: Stated) -> bool:
    """Return whether the statement from the log under a quota agrees with the rate without one.

    An uncertain mean is compared with one that has an uncertainty of its own, as clients run on a busy machine.
    """
    share, target = limited.rate / demand, "at most 100%"
    holds = share <= 1
    if limited.is_known:
        allowed = KNOWN if limited.confidence == "known" else limited.uncertainty + free.uncertainty
        target, holds = f"within {allowed:.0%}", abs(share - 1) <= allowed
    measured = f"{share:.1%} of {demand:,.0f} B/s, quota {quota / demand:.2f}"
    print(
        f"{name + ', ' + limited.confidence:<44} {measured:>34}  {target:<26} {'ok' if holds else 'WRONG'}", flush=True
    )
    return holds


def main() -> None:
    """Record, judge, print, and exit with 1 if a statement is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.plans", description=__doc__)
    parser.add_argument("--seconds", type=int, default=118, help="duration of each of the two recordings")
    parser.add_argument("--seed", type=int, default=1, help="other workloads and quotas")
    arguments = parser.parse_args()
    kinds = [kind for kind in KINDS if kind != "java" or "KAFKA_LIBS" in os.environ]
    if "java" not in kinds:
        print("java is left out; set KAFKA_LIBS to the folder of its jars")
    free = asyncio.run(record(arguments.seconds, arguments.seed, kinds, {}))
    demands = {client_id: rate_of(events) for client_id, events in free.items()}
    random = Random(arguments.seed)
    quotas = {client_id: round(demand * random.uniform(*QUOTAS)) for client_id, demand in demands.items()}
    limited = asyncio.run(record(arguments.seconds, arguments.seed, kinds, quotas))
    wrong = 0
    with TemporaryDirectory() as name:
        for client_id, demand in demands.items():
            before = stated(planned(free[client_id], Path(name) / f"{client_id}-free"))
            after = stated(planned(limited[client_id], Path(name) / f"{client_id}-limited"))
            wrong += not judge(client_id, demand, quotas[client_id], before, after)
    print(f"{len(demands)} pairs, {wrong} wrong statements")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

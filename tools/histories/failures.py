"""The failures of a run: fault rules of every kind, scenarios, kills of brokers, and failures of the network.

A failure that makes a broker lose acknowledged records, or a response claim something false, violates the checked
guarantees by design. These are excluded here, each with its reason.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from random import Random

from sluice import Broker, testing
from sluice.broker.scenarios.files import names
from sluice.errors import SluiceError
from sluice.protocol.apis import API_KEYS
from sluice.protocol.error_codes import codes_of
from sluice.protocol.errors import ErrorCode

from .history import History
from .workload import PARTITIONS, now_ms

PRODUCING = ("Produce", "InitProducerId", "AddPartitionsToTxn", "EndTxn")
READING = ("Fetch", "ListOffsets")
GROUPS = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "ConsumerGroupHeartbeat")
APIS = (*PRODUCING, *READING, *GROUPS, "Metadata", "FindCoordinator")

# Rules by kind; `api` is a choice, and None is a rule that is not for requests.
RULES: Mapping[str, tuple[tuple[tuple[str, ...] | None, Mapping[str, object]], ...]] = {
    "error": ((APIS, {"when": "before"}), (APIS, {"when": "after"})),
    "delay": ((APIS, {"min": 0, "max": 4000, "when": "before"}), (APIS, {"min": 0, "max": 4000, "when": "after"})),
    "hold": ((APIS, {"when": "before"}), (APIS, {"when": "after"})),
    "black-hole": ((APIS, {"when": "before"}), (APIS, {"when": "after"})),
    "close": ((APIS, {"when": "before"}), (APIS, {"when": "after", "how": "rst"}), (APIS, {"when": "mid-response"})),
    "correlation-id": ((APIS, {}),),
    "truncate": ((APIS, {}),),
    "garbage": ((("Fetch",), {}),),  # random bytes in other responses can be valid, and claim something false
    "oversize": ((APIS, {}),),
    "corrupt-records": ((("Fetch",), {}),),
    # Not what="records": the Fetch response has records twice, and a client may return both.
    "duplicate": ((("Produce", "OffsetCommit"), {"what": "request"}), (APIS, {"what": "response"})),
    "throttle": ((("Produce", "Fetch"), {"throttle_time_ms": 500}),),
    "slow-disk": ((("Produce", "Fetch"), {"latency": 200}),),
    "unknown-leader": ((("Metadata",), {}),),
    "wrong-leader": ((("Metadata",), {}),),
    "stale-leader-hint": ((("Produce", "Fetch"), {}),),
    "empty-metadata": ((("Metadata",), {}),),
    "refuse-connections": ((None, {"how": "closed-port"}), (None, {"how": "rst"})),
    "silent-connections": ((None, {}),),
    "bandwidth": ((None, {"in_bytes_per_s": 5000, "out_bytes_per_s": 5000}),),
    "drop-idle": ((None, {"idle": 500}),),
    "controller-lost": ((None, {}),),
    "slow-election": ((None, {"takes": 2000}),),
    "leader-moved": ((None, {}),),
    "coordinator-moved": ((None, {}),),
    "broker-down": ((None, {"controlled": True}), (None, {"controlled": False})),
    "isolate": ((None, {}),),
    "stale-metadata": ((None, {}),),
    "metadata-lag": ((None, {"lag": 1500}),),
    "disk-full": ((None, {}),),
}
EXCLUDED_KINDS = {
    "unclean-election": "loses acknowledged records",
    "offset-lie": "returns offsets that no log has",
    "stall-tls": "the memory network has no TLS",
    "stall-sasl": "a run has no SASL, which would delay each connection only",
    "acquisition-lock-lost": "a run has no share groups",
    "redelivery": "a run has no share groups",
    "acknowledgement-error": "a run has no share groups",
}
EXCLUDED_SCENARIOS = {"unclean-election": "loses acknowledged records"}
# Rules of one broker at a time, so that a majority remains.
_OF_ONE_BROKER = ("broker-down", "isolate", "disk-full", "silent-connections", "refuse-connections", "bandwidth")
_MEAN_PAUSE_S = 1.5
_MEAN_LENGTH_S = 2.0
# Failures at once: enough to overlap, and few enough that clients get on.
_CHOICES_AT_ONCE = (1, 1, 2)


def retriable_codes(api: str) -> list[str]:
    """Return the retriable errors of an API; others may claim that a record is appended, or that a log is lost."""
    key = next(key for key, messages in API_KEYS.items() if messages.name == api)
    return sorted(code.name for code in codes_of(key) if ErrorCode(code).retriable)


class Failures:
    """Starts random failures, ends them after a time, and records both."""

    def __init__(
        self, broker: Broker, history: History, random: Random, hosts: tuple[str, ...], latency_s: float
    ) -> None:
        self._broker = broker
        self._history = history
        self._random = random
        self._hosts = hosts
        self._latency_s = latency_s
        self._undo: list[Callable[[], object]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def fail(self, until_s: float) -> None:
        """Start failures until a time."""
        loop, random = asyncio.get_running_loop(), self._random
        while loop.time() < until_s:
            await asyncio.sleep(random.expovariate(1 / _MEAN_PAUSE_S))
            for _ in range(random.choice(_CHOICES_AT_ONCE)):
                random.choice((self._rule, self._rule, self._rule, self._network, self._kill, self._scenario))()

    async def end(self) -> None:
        """End all failures, and start all brokers."""
        for undo in self._undo:
            undo()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._broker.faults.clear()
        network = testing.network()
        network.heal()
        for host in self._hosts:
            network.link(host, latency_s=self._latency_s)
        for node_id, place in self._broker.brokers.items():
            network.accept(place)
            await self._start(node_id)
        self._note("all failures end")

    def _note(self, what: str) -> None:
        self._history.failures.append((now_ms(), what))

    def _later(self, undo: Callable[[], object]) -> None:
        self._undo.append(undo)
        asyncio.get_running_loop().call_later(self._random.expovariate(1 / _MEAN_LENGTH_S), undo)

    def _rule(self) -> None:
        random = self._random
        kind = random.choice([*RULES])
        apis, fields = random.choice(RULES[kind])
        action: dict[str, object] = {"kind": kind, **fields}
        rule: dict[str, object] = {"action": action}
        if apis is not None:
            api = random.choice(apis)
            rule |= {"api": api, "probability": random.choice((0.3, 1.0)), "times": random.choice((1, 3, 10))}
            if kind == "error":
                action["code"] = random.choice(retriable_codes(api))
        if kind in _OF_ONE_BROKER:
            rule["broker"] = random.choice([*self._broker.brokers])
        try:
            fault = self._broker.faults.add(rule)
        except SluiceError as error:
            self._note(f"no rule {rule}: {error}")  # such as broker-down of a broker that is down
            return
        self._note(f"rule {rule}")
        self._later(fault.remove)

    def _network(self) -> None:
        network, random = testing.network(), self._random
        host = random.choice(self._hosts)
        place = random.choice([*self._broker.brokers.values(), "*"])
        match random.randrange(5):
            case 0:
                network.partition(host, place)
                self._later(partial(network.heal, host, place))
                self._note(f"partition of {host} and {place}")
            case 1:
                network.reset(host, place)
                self._note(f"reset of {host} and {place}")
            case 2:
                network.forget(host, place)
                self._note(f"half-open connections of {host} and {place}")
            case 3:
                network.link(host, latency_s=random.random() / 5, jitter_s=random.random(), loss=0.1)
                self._later(partial(network.link, host, latency_s=self._latency_s))
                self._note(f"slow link of {host}")
            case _:
                place = random.choice([*self._broker.brokers.values()])
                network.refuse(place)
                self._later(partial(network.accept, place))
                self._note(f"refused connections at {place}")

    def _kill(self) -> None:
        task = asyncio.get_running_loop().create_task(
            self._kill_and_start(self._random.choice([*self._broker.brokers]))
        )
        self._tasks.add(task)

    async def _kill_and_start(self, node_id: int) -> None:
        try:
            await self._broker.cluster.stop(node_id, controlled=self._random.random() < 0.3)
        except SluiceError:
            return  # it is stopped already, or it is the last one
        self._note(f"broker {node_id} stops")
        await asyncio.sleep(self._random.expovariate(1 / _MEAN_LENGTH_S))
        await self._start(node_id)

    async def _start(self, node_id: int) -> None:
        try:
            await self._broker.cluster.start(node_id)
        except SluiceError:
            return  # it is running
        self._note(f"broker {node_id} starts")

    def _scenario(self) -> None:
        name = self._random.choice([name for name in names() if name not in EXCLUDED_SCENARIOS])
        try:
            run = self._broker.start_scenario(name)
        except SluiceError as error:
            self._note(f"no scenario {name}: {error}")  # a broker is down
            return
        self._undo.append(run.stop)
        self._note(f"scenario {name}")


async def create_topics(broker: Broker, *names: str) -> None:
    """Create topics as the catalogue's scenarios expect them. With two replicas in sync, one loss loses nothing."""
    assignments = {index: [(index + one) % 3 + 1 for one in range(3)] for index in range(PARTITIONS)}
    for name in names:
        await broker.cluster.create_topic(name, assignments=assignments, config={"min.insync.replicas": 2})

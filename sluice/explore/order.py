"""An order of events: what differs between two runs with the same failures.

Each order has a number, from which it is made together with the seed:

    latency of each application, jitter, and the size of segments    the order of bytes, between connections
    response times of some APIs                               the order of responses
    late timers                                               the order of timers
    preemptions: a host stops for a time at a random step     the order of tasks of different hosts

Latencies are priorities and preemptions are change points, as in PCT (Burckhardt et al., 2010): a bug of depth d needs
d - 1 of these. Within a host, tasks run in asyncio's order, as in a real process.
"""

from random import Random  # noqa: TID251  (one generator per order, made from its seed)

from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.requests.fault_execution import FaultExecution, Reply, RuleHit
from sluice.virtual_time.network import Network

from .events import OWN_CLIENTS
from .process_loop import ProcessLoop
from .run import Run

# One-way latencies: from a local network to a slow one.
_LATENCIES_S = (0.0, 0.0, 0.001, 0.02, 0.2)
_JITTER_S = 0.02
_SEGMENT_BYTES = (None, None, 1000, 100)
# APIs whose order matters: what is read, written and committed.
_APIS = ("Fetch", "Produce", "OffsetCommit", "Heartbeat", "JoinGroup", "SyncGroup", "EndTxn", "TxnOffsetCommit")
_SLOW_APIS = 2
_RESPONSE_MS = (1.0, 1000.0)
_MOST_PREEMPTIONS = 2
# A run of some records has thousands of steps. Preemptions last up to half of the session timeout of many clients.
_STEPS = (10.0, 5000.0)
_PREEMPTION_S = (0.001, 5.0)


class _SlowApi(Delay, frozen=True, tag="slow-api"):
    """Delays the responses to clients of the program."""

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        is_own = intercepted.ctx.session.client_id in OWN_CLIENTS
        return reply if is_own else super().after(intercepted, hit, reply)


class Order:
    def __init__(self, number: int, seed: int) -> None:
        """Make the order with a number; 0 is asyncio's, without delays."""
        self.number = number
        self._random = Random(f"{seed}:{number}")  # noqa: S311  (repeatable on purpose)

    def apply(self, loop: ProcessLoop, run: Run) -> None:
        if not self.number:
            return
        for api in self._random.sample(_APIS, _SLOW_APIS):
            run.add_rule(_SlowApi(ms=self._between(*_RESPONSE_MS), when="after"), api=api)
        preemptions = [
            (round(self._between(*_STEPS)), self._between(*_PREEMPTION_S))
            for _ in range(self.number % (_MOST_PREEMPTIONS + 1))
        ]
        loop.vary(self._random, preemptions)

    def start_host(self, host: str, network: Network) -> None:
        """Give a host its place in the network."""
        if self.number:
            choice = self._random.choice
            latency_s, segment_bytes = choice(_LATENCIES_S), choice(_SEGMENT_BYTES)
            network.link(host, latency_s=latency_s, jitter_s=_JITTER_S, segment_bytes=segment_bytes)

    def _between(self, least: float, most: float) -> float:
        """Return a number whose logarithm is uniform."""
        return float(least * (most / least) ** self._random.random())

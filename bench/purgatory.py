"""The cost of delayed operations: `python -m bench.purgatory`, about 20 s, no arguments.

- Cost: the CPU time to create, add and cancel one operation (in the second column also to watch a key) with many others
  pending. The cyclic garbage collector is on, as in a broker.
- Stall: the longest time to expire the operations of one millisecond, of a million operations over 30 s.
- Lateness: 1,000 operations that expire together in an asyncio loop, compared with 1,000 timers of the loop.

Each figure is printed with its target. The exit code is 1 if one is missed, which means little on a busy machine.
"""

import asyncio
import gc
import sys
import tracemalloc
from collections.abc import Callable
from time import perf_counter, process_time

from sluice.clock import Clock, LoopClock, ManualClock
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.purgatory.timer import Timer

PENDING = (1_000, 10_000, 100_000, 1_000_000)
SPREAD_MS = 30_000  # of the deadlines: the longest throttle time, and twice the longest poll by default
ROUNDS = 5
PER_ROUND = 20_000

COST_US = 5.0
FLAT = 2.0  # cost with the most pending / cost with the fewest; the rest is the processor's cache
LATE_P99_MS = 5.0
BURSTS = 20


class Nothing(DelayedOperation):
    """An operation without effect, so that only the delay is measured."""

    __slots__ = ()

    def on_complete(self) -> None:
        pass


class Lateness(DelayedOperation):
    """An operation that records how late it expires."""

    __slots__ = ("clock", "late_ms")

    def __init__(self, delay_ms: float, clock: Clock, late_ms: list[float]) -> None:
        super().__init__(delay_ms)
        self.clock = clock
        self.late_ms = late_ms

    def on_complete(self) -> None:
        self.late_ms.append(self.clock.monotonic_ms() - self.deadline_ms)


def fill(purgatory: DelayedOperationPurgatory, pending: int) -> None:
    for i in range(pending):
        purgatory.delay(Nothing(1 + i * 7919 % SPREAD_MS))  # a prime, so that neighbours have different deadlines


def cost_us(purgatory: DelayedOperationPurgatory, keys: tuple[str, ...]) -> float:
    """Return the microseconds to create, add and complete one operation, in the median round."""
    rounds = []
    for _ in range(ROUNDS):
        start = process_time()
        for _ in range(PER_ROUND):
            operation = Nothing(5_000)
            if keys:
                purgatory.try_complete_else_watch(operation, keys)
            else:
                purgatory.delay(operation)
            operation.force_complete()
        rounds.append((process_time() - start) / PER_ROUND * 1e6)
    return sorted(rounds)[ROUNDS // 2]


def bytes_each(pending: int) -> float:
    gc.collect()
    tracemalloc.start()
    purgatory = DelayedOperationPurgatory("Memory", Timer(ManualClock()))
    fill(purgatory, pending)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used / len(purgatory)


def measure_cost() -> bool:
    print(f"{'pending':>10} {'add+cancel':>12} {'watch+cancel':>13} {'fill':>12}")
    loop = asyncio.new_event_loop()
    costs = []
    for pending in PENDING:
        purgatory = DelayedOperationPurgatory("Bench", Timer(LoopClock(loop)))
        start = process_time()
        fill(purgatory, pending)
        filling_us = (process_time() - start) / pending * 1e6
        costs.append(cost_us(purgatory, ()))
        watch_us = cost_us(purgatory, ("topic-0",))
        print(f"{pending:>10,} {costs[-1]:>9.2f} µs {watch_us:>10.2f} µs {filling_us:>9.2f} µs")
    loop.close()
    met = max(costs) < COST_US and costs[-1] < FLAT * costs[0]
    print(f"add+cancel under {COST_US:.0f} µs, and at most {FLAT:.0f} times the first cost at the end: {verdict(met)}")
    print(f"memory of a pending operation: {bytes_each(100_000):.0f} bytes")
    return met


def measure_stall() -> None:
    clock = ManualClock()
    purgatory = DelayedOperationPurgatory("Bench", Timer(clock))
    fill(purgatory, PENDING[-1])
    longest_s = 0.0
    start = perf_counter()
    for _ in range(SPREAD_MS):
        before = perf_counter()
        clock.advance(1)
        longest_s = max(longest_s, perf_counter() - before)
    each_us = (perf_counter() - start) / PENDING[-1] * 1e6
    assert len(purgatory) == 0
    print(f"expiring {PENDING[-1]:,} over 30 s: {each_us:.2f} µs each, longest stall {longest_s * 1e3:.1f} ms")


def late_bursts_ms(wait: Callable[[asyncio.AbstractEventLoop, LoopClock, list[float]], None]) -> list[list[float]]:
    """Return the sorted lateness of 1,000 calls that `wait` schedules, for each of BURSTS bursts."""
    loop = asyncio.new_event_loop()
    clock = LoopClock(loop)
    bursts: list[list[float]] = [[] for _ in range(BURSTS)]
    for i, late_ms in enumerate(bursts):
        loop.call_later(i * 0.1, wait, loop, clock, late_ms)
    loop.call_later(BURSTS * 0.1 + 0.2, loop.stop)
    loop.run_forever()
    loop.close()
    assert all(len(late_ms) == 1_000 for late_ms in bursts)
    return [sorted(late_ms) for late_ms in bursts]


def in_purgatory(_loop: asyncio.AbstractEventLoop, clock: LoopClock, late_ms: list[float]) -> None:
    purgatory = DelayedOperationPurgatory("Bench", Timer(clock))
    for _ in range(1_000):
        purgatory.delay(Lateness(50, clock, late_ms))


def in_bare_loop(loop: asyncio.AbstractEventLoop, clock: LoopClock, late_ms: list[float]) -> None:
    def note(deadline_ms: float) -> None:
        late_ms.append(clock.monotonic_ms() - deadline_ms)

    for _ in range(1_000):
        deadline_ms = clock.monotonic_ms() + 50
        loop.call_at(deadline_ms / 1e3, note, deadline_ms)


def measure_lateness() -> bool:
    """Measure the median burst, as other load on the machine affects single bursts."""
    print(f"{'1,000 expire at once':>22} {'p50':>9} {'p99':>9} {'least':>9}")
    for name, wait in (("bare asyncio loop", in_bare_loop), ("purgatory", in_purgatory)):
        bursts = late_bursts_ms(wait)
        p50, p99 = (sorted(burst[at] for burst in bursts)[BURSTS // 2] for at in (500, 990))
        least = min(burst[0] for burst in bursts)
        print(f"{name:>22} {p50:>6.2f} ms {p99:>6.2f} ms {least:>6.2f} ms")
    met = least >= 0 and p99 < LATE_P99_MS
    print(f"never early, p99 of the median burst under {LATE_P99_MS:.0f} ms: {verdict(met)}")
    return met


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def main() -> int:
    """Print the tables; return 1 if a target is missed."""
    met = measure_cost()
    measure_stall()
    return 0 if measure_lateness() and met else 1


if __name__ == "__main__":
    sys.exit(main())

"""The verdict on each client of the demo, as text or JSON. Pure."""

from typing import Final

from msgspec import Struct

from .trace import LONGEST_CYCLE_MS, PRODUCE, Client, Cycles, replay

# Maximum deviation from the quota. Apache Kafka itself is 1 % (produce) and 4 % (fetch) above.
MOST_OFF_QUOTA: Final = 0.05
# Maximum deviation of a producer from its replay, by late timers. A consumer's rate varies by 4 % even there.
MOST_OFF_REPLAY: Final = 0.02
# Bursts are 11 to 12 s apart; two after the first make a whole cycle.
SHORTEST_S: Final = 25
_S_PER_BURST: Final = 11

METHOD: Final = (
    "A new sensor is empty, so each client first sent or received ten seconds' worth of its quota at once. It was then "
    "throttled until that burst left the broker's windows, 11 to 12 s later, when the next burst followed. A single "
    "second therefore shows anything from 0 to 11 times the quota; the verdict uses the average over whole cycles, "
    "from the start of the second burst to the start of the last one."
)
VIRTUAL: Final = (
    '"Virtual" is the rate of the same requests with the same arithmetic in virtual time, without late timers.'
)


class Result(Struct, frozen=True):
    """The rate and verdict of one client. `problems` are lines of text, empty for a pass."""

    client: Client
    byte_rate: float  # bytes/s over the whole cycles; over the run for the unthrottled client
    cycles: Cycles | None  # None for the unthrottled client, or without a complete cycle
    virtual_byte_rate: float | None  # over the whole cycles of the replay
    throttle_s: float
    problems: list[str]


def bursts_within(seconds: float) -> int:
    return 1 + int(seconds // _S_PER_BURST)


def judge(client: Client, throttle_s: float) -> Result:
    exchanges = client.trace.exchanges
    if not client.exceeds_quota:
        rate = (
            client.trace.byte_rate(exchanges[0].answered_ms, exchanges[-1].answered_ms) if len(exchanges) > 1 else 0.0
        )
        return Result(client, rate, None, None, throttle_s, _problems_of_unthrottled(client, rate, throttle_s))
    cycles = client.trace.whole_cycles(client.quota)
    if cycles is None:
        problem = f"{client.name} had no whole cycle after its first burst; retry on a less busy machine"
        return Result(client, 0.0, None, None, throttle_s, [problem])
    # The trace may end with its last burst, which may come later in virtual time.
    virtual = replay(client, LONGEST_CYCLE_MS).whole_cycles(client.quota, cycles.count)
    virtual_rate = virtual.byte_rate if virtual is not None else None
    problems = _problems_of_throttled(client, cycles.byte_rate, virtual_rate)
    return Result(client, cycles.byte_rate, cycles, virtual_rate, throttle_s, problems)


def _problems_of_unthrottled(client: Client, rate: float, throttle_s: float) -> list[str]:
    if throttle_s:
        return [f"{client.name} was throttled for {throttle_s:.2f} s, but sent less than its quota"]
    return [] if rate else [f"{client.name} sent nothing"]


def _problems_of_throttled(client: Client, rate: float, virtual_rate: float | None) -> list[str]:
    problems = []
    if abs(rate / client.quota - 1) > MOST_OFF_QUOTA:
        allowed = f"{MOST_OFF_QUOTA:.0%} is allowed"
        problems.append(f"{client.name} is {rate / client.quota - 1:+.1%} off its quota; {allowed}")
    if virtual_rate is None:
        problems.append(f"{client.name} had no whole cycle in virtual time")
    elif client.kind == PRODUCE and abs(rate / virtual_rate - 1) > MOST_OFF_REPLAY:
        allowed = f"{MOST_OFF_REPLAY:.0%} is allowed"
        problems.append(f"{client.name} is {rate / virtual_rate - 1:+.1%} off its rate in virtual time; {allowed}")
    return problems


def as_json(results: list[Result], started_ms: float) -> dict[str, object]:
    """Return the summary; times in seconds since `started_ms`, rates in bytes/s."""
    return {
        "passed": not any(result.problems for result in results),
        "method": f"{METHOD} {VIRTUAL}",
        "clients": [_row(result, started_ms) for result in results],
    }


def _row(result: Result, started_ms: float) -> dict[str, object]:
    client, cycles, virtual = result.client, result.cycles, result.virtual_byte_rate
    return {
        "client_id": client.name,
        "library": client.library,
        "resource": client.kind,
        "quota": client.quota,
        "byte_rate": result.byte_rate,
        "of_quota": result.byte_rate / client.quota,
        "whole_cycles": cycles.count if cycles else None,
        "from_s": (cycles.start_ms - started_ms) / 1e3 if cycles else None,
        "to_s": (cycles.end_ms - started_ms) / 1e3 if cycles else None,
        "virtual_of_quota": virtual / client.quota if virtual else None,
        "throttle_s": result.throttle_s,
        "payload_bytes": client.trace.payload_bytes,
        "requests": len(client.trace.exchanges),
        "problems": result.problems,
    }

"""The verdict on each client of the demo, as text or JSON. Pure."""

from typing import Final

from msgspec import Struct

from .trace import Client, Cycles

# Maximum deviation from the quota. Apache Kafka itself is 1 % (produce) and 4 % (fetch) above.
MOST_OFF_QUOTA: Final = 0.05
# Bursts are 11 to 12 s apart; two after the first make a whole cycle.
SHORTEST_S: Final = 25
_S_PER_BURST: Final = 11

METHOD: Final = (
    "A new sensor is empty, so each client first sent or received ten seconds' worth of its quota at once. It was then "
    "throttled until that burst left the broker's windows, 11 to 12 s later, when the next burst followed. A single "
    "second therefore shows anything from 0 to 11 times the quota; the verdict uses the average over whole cycles, "
    "from the start of the second burst to the start of the last one."
)


class Result(Struct, frozen=True):
    """The rate and verdict of one client. `problems` are lines of text, empty for a pass."""

    client: Client
    byte_rate: float  # bytes/s over the whole cycles; over the run for the unthrottled client
    cycles: Cycles | None  # None for the unthrottled client, or without a complete cycle
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
        return Result(client, rate, None, throttle_s, _problems_of_unthrottled(client, rate, throttle_s))
    cycles = client.trace.whole_cycles(client.quota)
    if cycles is None:
        problem = f"{client.name} had no whole cycle after its first burst; retry on a less busy machine"
        return Result(client, 0.0, None, throttle_s, [problem])
    off = cycles.byte_rate / client.quota - 1
    problem = f"{client.name} is {off:+.1%} off its quota; {MOST_OFF_QUOTA:.0%} is allowed"
    return Result(client, cycles.byte_rate, cycles, throttle_s, [problem] if abs(off) > MOST_OFF_QUOTA else [])


def _problems_of_unthrottled(client: Client, rate: float, throttle_s: float) -> list[str]:
    if throttle_s:
        return [f"{client.name} was throttled for {throttle_s:.2f} s, but sent less than its quota"]
    return [] if rate else [f"{client.name} sent nothing"]


def as_json(results: list[Result], started_ms: float) -> dict[str, object]:
    """Return the summary; times in seconds since `started_ms`, rates in bytes/s."""
    return {
        "passed": not any(result.problems for result in results),
        "method": METHOD,
        "clients": [_row(result, started_ms) for result in results],
    }


def _row(result: Result, started_ms: float) -> dict[str, object]:
    client, cycles = result.client, result.cycles
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
        "throttle_s": result.throttle_s,
        "payload_bytes": client.trace.payload_bytes,
        "requests": len(client.trace.exchanges),
        "problems": result.problems,
    }

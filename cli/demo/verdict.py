"""Whether each client of the demo got what its quota says: the rules, and the result as text or JSON. Pure."""

from typing import Final

from msgspec import Struct

from .trace import PRODUCE, Client, Cycles, replay

# What a throttled client may be off its quota. Apache Kafka itself is 1 % (produce) and 4 % (fetch) over.
MOST_OFF_QUOTA: Final = 0.05
# What a producer may be off the same requests in virtual time: the rest is timers that are late. A consumer's rate goes
# either way by 4 %, in virtual time too: a millisecond decides whether a fetch passes before or after a sample is gone.
MOST_OFF_REPLAY: Final = 0.02
# Bursts are 11 to 12 s apart, and two of them after the first make one whole cycle. The rest is for clients to start.
SHORTEST_S: Final = 25
_S_PER_BURST: Final = 11

METHOD: Final = (
    "A fresh sensor has ten empty seconds behind it, so each client got ten seconds' worth through at once. It was "
    "then held until the broker's windows had forgotten that burst, 11 to 12 s after it; then the next one followed. "
    "So a single second shows anything from 0 to 11 times the quota, and what is judged is the average over whole "
    "cycles, from the start of the second burst to the start of the last one."
)
VIRTUAL: Final = (
    '"Virtual" is what the same requests get by the same arithmetic in virtual time, where no timer is late.'
)


class Result(Struct, frozen=True):
    """What one client got. `problems` are lines for people; empty if all is well."""

    client: Client
    byte_rate: float  # bytes/s, over the whole cycles or, of the client that asks for less, the whole run
    cycles: Cycles | None  # None for the client that asks for less, or when there was not even one
    virtual_byte_rate: float | None  # the same over the replay's own whole cycles
    throttle_s: float  # as the broker counted it
    problems: list[str]


def bursts_within(seconds: float) -> int:
    """How many bursts a client that asks for more than its quota is to have had in this time, the first included."""
    return 1 + int(seconds // _S_PER_BURST)


def judge(client: Client, throttle_s: float) -> Result:
    """Judges one client by its trace and by the throttle time that the broker counted for it."""
    exchanges = client.trace.exchanges
    if not client.asks_for_more:
        rate = (
            client.trace.byte_rate(exchanges[0].answered_ms, exchanges[-1].answered_ms) if len(exchanges) > 1 else 0.0
        )
        return Result(client, rate, None, None, throttle_s, _problems_of_unthrottled(client, rate, throttle_s))
    cycles = client.trace.whole_cycles(client.quota)
    if cycles is None:
        problem = f"{client.name} showed no whole cycle after its first burst; is the machine very busy?"
        return Result(client, 0.0, None, None, throttle_s, [problem])
    virtual = replay(client).whole_cycles(client.quota)
    virtual_rate = virtual.byte_rate if virtual is not None else None
    problems = _problems_of_throttled(client, cycles.byte_rate, virtual_rate)
    return Result(client, cycles.byte_rate, cycles, virtual_rate, throttle_s, problems)


def _problems_of_unthrottled(client: Client, rate: float, throttle_s: float) -> list[str]:
    if throttle_s:
        return [f"{client.name} was throttled for {throttle_s:.2f} s, though it asked for less than its quota"]
    return [] if rate else [f"{client.name} sent nothing"]


def _problems_of_throttled(client: Client, rate: float, virtual_rate: float | None) -> list[str]:
    problems = []
    if abs(rate / client.quota - 1) > MOST_OFF_QUOTA:
        allowed = f"{MOST_OFF_QUOTA:.0%} is allowed"
        problems.append(f"{client.name} is {rate / client.quota - 1:+.1%} off its quota; {allowed}")
    if virtual_rate is None:
        problems.append(f"{client.name} showed no whole cycle in virtual time")
    elif client.kind == PRODUCE and abs(rate / virtual_rate - 1) > MOST_OFF_REPLAY:
        allowed = f"{MOST_OFF_REPLAY:.0%} is allowed"
        problems.append(f"{client.name} is {rate / virtual_rate - 1:+.1%} off the same in virtual time; {allowed}")
    return problems


def as_json(results: list[Result], started_ms: float) -> dict[str, object]:
    """The summary for machines; times in seconds since `started_ms`, rates in bytes/s."""
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

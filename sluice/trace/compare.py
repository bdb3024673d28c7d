"""Two traces side by side: the requests that are the same in both, and what differs.

A request is the same if its client id, API, subject, number of the attempt and number of the retry are: the third retry
of the second Produce to orders-0, for example. Spans of other lanes are the same by lane and number. The number of
requests that clients repeat by time differs between any two runs: of these, only an outcome that the other trace does
not have is a difference.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .model import NONE, Comparison, Difference, Trace

_MOST = 200
# APIs whose number of requests depends on time.
_BY_TIME = frozenset(
    {
        *("ApiVersions", "Metadata", "ListOffsets", "Fetch", "ShareFetch", "OffsetCommit", "OffsetFetch"),
        *("Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat", "FindCoordinator"),
    }
)


class _Key(NamedTuple):
    """What identifies a bar in both traces; `attempt` and `retry` are numbers from 0."""

    owner: str  # client id, or lane
    text: str  # API and subject; "" for a state
    attempt: int
    retry: int


def compare(trace: Trace, other: Trace) -> Comparison:
    """Return what is the same and what differs; `other` is the trace to compare with, such as that of a passed run."""
    keys, other_keys = _keys(trace), _keys(other)
    places = {key: bar for bar, key in enumerate(other_keys)}
    pairs = [(bar, places[key]) for bar, key in enumerate(keys) if key in places]
    differences = [
        *_paired(trace, other, keys, pairs),
        *_alone(trace, other, keys, pairs),
        *_missing(trace, other, other_keys, pairs),
        *_by_time(trace, other, keys, other_keys),
    ]
    differences.sort(key=lambda difference: difference.at)
    return Comparison(other, pairs, differences[:_MOST])


def outcome(trace: Trace, bar: int) -> str:
    return trace.outcomes[trace.bars.outcome[bar]].name


def _keys(trace: Trace) -> list[_Key]:
    bars = trace.bars
    attempts: dict[tuple[str, str], int] = {}  # the number of the next attempt
    chains: dict[int, tuple[int, int]] = {}  # by chain: the number of its attempt and of its next retry
    keys = []
    for bar, lane in enumerate(bars.lane):
        is_request = trace.lanes[lane].group == "client"
        owner = trace.lanes[lane].owner if is_request else trace.lanes[lane].id
        text = trace.texts[bars.text[bar]].rpartition(" (v")[0] if is_request else ""
        chain = bars.attempt[bar]
        if chain in chains:
            attempt, retry = chains[chain]
        else:
            attempt, retry = attempts.get((owner, text), 0), 0
            attempts[owner, text] = attempt + 1
        if chain != NONE:
            chains[chain] = attempt, retry + 1
        keys.append(_Key(owner, text, attempt, retry))
    return keys


def _api(key: _Key) -> str:
    return key.text.partition(" ")[0]


def _subject(key: _Key) -> str:
    return f"{key.text} of client {key.owner}" if key.text else key.owner


def _paired(trace: Trace, other: Trace, keys: Sequence[_Key], pairs: Sequence[tuple[int, int]]) -> Iterator[Difference]:
    for bar, other_bar in pairs:
        here, there = outcome(trace, bar), outcome(other, other_bar)
        if here != there and _api(keys[bar]) not in _BY_TIME:
            text = f"{_subject(keys[bar])}: {here} here, {there} in the other trace"
            yield Difference(trace.bars.start[bar], text, bar, other_bar)


def _alone(trace: Trace, other: Trace, keys: Sequence[_Key], pairs: Sequence[tuple[int, int]]) -> Iterator[Difference]:
    known = {bar for bar, _ in pairs}
    for bar, key in enumerate(keys):
        if bar not in known and _api(key) not in _BY_TIME:
            text = f"{_subject(key)}: {outcome(trace, bar)} here, not in the other trace"
            yield Difference(trace.bars.start[bar], text, bar)


def _missing(
    trace: Trace, other: Trace, other_keys: Sequence[_Key], pairs: Sequence[tuple[int, int]]
) -> Iterator[Difference]:
    """Yield what only the other trace has, at the time here of what precedes it there."""
    partner = {other_bar: bar for bar, other_bar in pairs}
    at = 0
    for other_bar, key in enumerate(other_keys):
        if other_bar in partner:
            at = max(at, trace.bars.start[partner[other_bar]])
        elif _api(key) not in _BY_TIME:
            text = f"{_subject(key)}: {outcome(other, other_bar)} in the other trace, not here"
            yield Difference(at, text, NONE, other_bar)


def _by_time(trace: Trace, other: Trace, keys: Sequence[_Key], other_keys: Sequence[_Key]) -> Iterator[Difference]:
    known = {(key.owner, _api(key), outcome(other, bar)) for bar, key in enumerate(other_keys)}
    for bar, key in enumerate(keys):
        kind = key.owner, _api(key), outcome(trace, bar)
        if kind not in known and _api(key) in _BY_TIME:
            known.add(kind)
            yield Difference(trace.bars.start[bar], f"{_subject(key)}: {kind[2]} here, never in the other trace", bar)

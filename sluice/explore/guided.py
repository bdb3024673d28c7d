"""The guided strategy: failures at points of earlier runs, and variations of runs that reached new states.

The points of a run are divided by client, API and previous request: those between a Fetch and an OffsetCommit, for
example. Each kind of failure is first tried at one point of each API, then at other points, in states of the cluster
that it has not hit yet. Preferred are requests that change something, failures of applications and groups, kinds of
failures that led to new states, and those whose effect differs from that of others at the API and in the run. Most runs
have several failures, at different requests, as the reduction finds the one that matters.

A run that reached new states is varied: it is repeated up to its last failure, and gets another one after that. Some
runs have another order of events.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from random import Random  # noqa: TID251  (the search's single source of randomness)

import msgspec

from .execution import Outcome, Schedule
from .history import Point
from .injection import HEARTBEATS, KINDS, Injection

_MOST_INJECTIONS = 3
# The numbers of failures of successive runs: three cost a sixth more than one, but hide what one alone does.
_INJECTIONS = (3, 3, 2, 3, 3, 1)
_ORDERS = 5  # one of so many runs has another order of events
# Weights of APIs: those with which an application reads, writes and commits. Others have half of a Heartbeat's.
_APIS = {"Produce": 3.0, "OffsetCommit": 3.0, "TxnOffsetCommit": 3.0, "EndTxn": 3.0, "Fetch": 2.0} | dict.fromkeys(
    HEARTBEATS, 1.0
)
_OTHER_API = 0.5
# Weights of kinds: clients themselves handle most of the other failures.
_KINDS = dict.fromkeys(
    ("kill-after", "cancelled", "paused", "second-instance", "session-expired", "rebalance", "response-lost"), 2.0
) | dict.fromkeys(("request-lost", "throttle", "slow", "slow-disk", "clock-jump", "broker-lost"), 0.5)
# Kinds with similar effects: the end of an application, a loss of its partitions, an unknown outcome of a request,
# another leader or producer, and a delay.
_EFFECTS = {
    kind: number
    for number, kinds in enumerate(
        (
            ("kill-before", "kill-after", "cancelled"),
            ("paused", "second-instance", "session-expired", "rebalance"),
            ("response-lost", "request-lost", "broker-killed", "broker-power-lost", "broker-lost"),
            ("leader-moved", "coordinator-moved", "producer-fenced"),
            ("stalled", "slow", "slow-disk", "throttle", "clock-jump"),
        )
    )
    for kind in kinds
}
_SAME_EFFECT = 0.5  # counts of another kind with the same effect, and weight of a second one in a run
_PLACE_WEIGHT = 0.3  # of a new place at an API that a failure has hit
_OTHER_RUNS = 0.25  # share of variations of runs that reached new states
_NOISE = 2.0  # a random part, of the size of usual weights
# Several new states of one run are not much more than one.
_MOST_NEW = 5
# Together, two of these would lose records that no application can save.
_OF_BROKERS = frozenset({"broker-killed", "broker-power-lost", "broker-lost"})

Place = tuple[str, str, str]  # client id, API, API of the previous request


class _Base(msgspec.Struct):
    """A run that can be varied: its schedule, the points after its last failure, and how often it was varied."""

    schedule: Schedule
    places: dict[Place, list[Point]]
    new: int
    uses: int = 0


class Guided:
    def __init__(self, first: Outcome, failures: Sequence[str], seed: int) -> None:
        self._failures = failures
        self._random = Random(seed)  # noqa: S311  (repeatable on purpose)
        self._states = {*first.states}
        self._bases = [_Base(Schedule(), _places(first.points), 1)]
        self._number = 0
        # Of a kind of failure at an API, place or state, and of an effect at an API.
        self._uses: Counter[tuple[str | int, ...]] = Counter()
        self._useless: set[tuple[str, str, str]] = set()  # kinds of failures that did not hit, at an API
        self._gains = dict.fromkeys(failures, 1.0)

    def propose(self, count: int) -> Sequence[Schedule]:
        return [self._next() for _ in range(count)]

    def read(self, schedule: Schedule, outcome: Outcome) -> None:
        new = len(outcome.states - self._states)
        self._states |= outcome.states
        for each in schedule.injections[-1:]:
            self._gains[each.kind] += (min(new, _MOST_NEW) / _MOST_NEW - self._gains[each.kind]) / 4
        for each in schedule.injections[:1]:  # earlier failures, or another order, may have prevented the others
            if each in outcome.missed and not schedule.order:
                self._useless.add((each.kind, each.client_id, each.api))
        if new and schedule.injections and not outcome.missed and len(schedule.injections) < _MOST_INJECTIONS:
            places = _places(_after_last(schedule, outcome.points))
            if places:
                self._bases.append(_Base(schedule, places, new))

    def _next(self) -> Schedule:
        self._number += 1
        base = self._base()
        base.uses += 1
        order = self._number if self._number % _ORDERS == 0 else base.schedule.order
        kept = base.schedule.injections
        added: dict[Point, Injection] = {}
        for _ in range(min(_INJECTIONS[(self._number - 1) % len(_INJECTIONS)], _MOST_INJECTIONS - len(kept))):
            self._add_injection(base, added)
        if not added:
            return Schedule(kept, self._number)
        return Schedule((*kept, *(added[point] for point in sorted(added, key=lambda each: each.seq))), order)

    def _base(self) -> _Base:
        first, *others = self._bases
        if not others or self._random.random() >= _OTHER_RUNS:
            return first
        weights = [min(each.new, _MOST_NEW) / (1 + each.uses) for each in others]
        return self._random.choices(others, weights)[0]

    def _add_injection(self, base: _Base, added: dict[Point, Injection]) -> None:
        before = [*base.schedule.injections, *added.values()]
        has_broker = any(each.kind in _OF_BROKERS for each in before)
        candidates = [
            (kind, place)
            for place, points in base.places.items()
            # Requests of the start hide what the others do.
            if not added or (place[1] in _APIS and not added.keys() >= {*points})
            for kind in self._failures
            if self._can_hit(kind, place, base) and not (has_broker and kind in _OF_BROKERS)
        ]
        if not candidates:
            return
        effects = {_EFFECTS[each.kind] for each in before}
        kind, place = max(candidates, key=lambda each: self._score(each[0], each[1], effects))
        points = [each for each in base.places[place] if each not in added]
        least = min(self._uses[kind, *place, str(each.state)] for each in points)
        point = self._random.choice([each for each in points if self._uses[kind, *place, str(each.state)] == least])
        client_id, api, _ = place
        of_effect = (_EFFECTS[kind], client_id, api)
        self._uses.update([of_effect, (kind, client_id, api), (kind, *place), (kind, *place, str(point.state))])
        added[point] = Injection(kind, client_id, api, point.nth)

    def _can_hit(self, kind: str, place: Place, base: _Base) -> bool:
        client_id, api, _ = place
        if api not in KINDS[kind].apis or (kind, client_id, api) in self._useless:
            return False
        return not KINDS[kind].needs or KINDS[kind].needs in base.places[place][0].needs

    def _score(self, kind: str, place: Place, effects: Collection[int]) -> float:
        client_id, api, _ = place
        effect = _EFFECTS[kind]
        weight = _APIS.get(api, _OTHER_API) * _KINDS.get(kind, 1.0) * (1 + self._gains[kind])
        if effect in effects:
            weight *= _SAME_EFFECT
        at_api = self._uses[kind, client_id, api] + _SAME_EFFECT * self._uses[effect, client_id, api]
        at_place = self._uses[kind, *place]
        return weight / (1 + at_api) + weight * _PLACE_WEIGHT / (1 + at_place) + _NOISE * self._random.random()


def _places(points: Sequence[Point]) -> dict[Place, list[Point]]:
    found: dict[Place, list[Point]] = {}
    for point in points:
        found.setdefault((point.client_id, point.api, point.previous), []).append(point)
    return found


def _after_last(schedule: Schedule, points: Sequence[Point]) -> Sequence[Point]:
    """Return the points after the last failure, before which the run repeats exactly."""
    last = schedule.injections[-1]
    numbers = [
        n
        for n, each in enumerate(points)
        if (each.client_id, each.api, each.nth) == (last.client_id, last.api, last.nth)
    ]
    return points[numbers[0] + 1 :] if numbers else ()

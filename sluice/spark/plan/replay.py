"""The replay of one client's requests on one broker under a candidate quota, in virtual time.

The requests are charged again to a sensor with the candidate's bound (`sluice.quotas`). A request over the bound
throttles its connection as the profile specifies:

- KIP-13: the response is delayed.
- KIP-219: the response is sent at once and the connection is muted. A muted fetch returned no records; its charge is
  removed, and it is sent again.

Other connections of the client share the sensor but are not throttled. The loops differ in the later requests of a
throttled connection:

- open: they arrive at their recorded times and queue up.
- closed: each is sent after the response plus the think time, the recorded time between the two requests. Think time
  starts when a delayed response is sent; it passes during a mute.

A connection follows the trace until it is throttled. It is then detached, with a due time for its next request, until
that is the trace's time again. In the closed loop, a client with one lane is never detached: its later requests shift
by the same time. While every connection follows the trace, charges that cannot exceed the bound are recorded as runs,
found by bisection (`Sensor.room`).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Literal, NamedTuple

from sluice.broker.throttling.profile import HOLD, MUTE, PROFILES, Throttling
from sluice.protocol.apis import ApiKey
from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import INACTIVE_SENSOR_EXPIRATION_MS, ClientQuotaManager, QuotaConfig
from sluice.quotas.sensor import Sensor
from sluice.spark.charges.charges import Client, Kind, Requests

Loop = Literal["closed", "open"]
LOOPS: tuple[Loop, ...] = ("closed", "open")
API_KEYS: dict[Kind, int] = {"Produce": ApiKey.PRODUCE, "Fetch": ApiKey.FETCH}

_NS_PER_MS = 1_000_000
_LEAST_SPAN_MS = 1000.0  # rates over less than a second are meaningless
_EXPIRES_AFTER_NS = INACTIVE_SENSOR_EXPIRATION_MS * _NS_PER_MS
_FIRST_ROWS = 64  # bisected first, as most runs are short


class Candidate(NamedTuple):
    quota: float  # bytes/s on one broker
    profile: str  # a key of `PROFILES`
    loop: Loop


class Delays:
    """A histogram of delays above 0, in milliseconds."""

    __slots__ = ("_counts", "maximum", "total")

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.total = 0
        self.maximum = 0

    def add(self, ms: int, rounded_ms: int) -> None:
        self._counts[rounded_ms] += 1
        self.total += ms
        self.maximum = max(self.maximum, ms)

    @property
    def count(self) -> int:
        return self._counts.total()

    def percentiles(self, shares: Sequence[float], count: int) -> list[int]:
        """Return the delay at each ascending share of `count` requests, including those without delay."""
        found, below = [], count - self.count
        ascending = iter(sorted(self._counts.items()))
        ms = 0
        for share in shares:
            while below < share * count:
                ms, more = next(ascending)
                below += more
            found.append(ms)
        return found


class Outcome(NamedTuple):
    """The effect of a candidate on a client.

    Delays are the throttle times of responses; percentiles are over all responses, including those without one.
    """

    requests: int  # recorded requests; each part of a split fetch counts
    answers: int  # responses: to the requests, and empty ones to muted fetches
    throttled: int
    starved: int  # fetches larger than the quota of a whole window, which the profile does not split: never served
    delay_p50_ms: int
    delay_p95_ms: int
    delay_p99_ms: int
    delay_max_ms: int
    delay_total_ms: int
    added_p50_ms: int  # added latency: the delay of a response compared with no quota
    added_p99_ms: int
    added_max_ms: int
    added_total_ms: int
    bytes: int
    span_ms: float  # virtual, from the first charge to the last
    offered_rate: float  # bytes/s over the recorded time
    achieved_rate: float  # over `span_ms`

    @property
    def throttled_share(self) -> float:
        return self.throttled / self.answers if self.answers else 0.0


_NOTHING = Outcome._make([0] * len(Outcome._fields))


def replay(client: Client, requests: Requests, candidate: Candidate, config: QuotaConfig | None = None) -> Outcome:
    """Charge `requests` under `candidate`, with the windows of `config`."""
    found = _Replay(client, requests, candidate, config or QuotaConfig())
    return found.run() if found.is_served else _NOTHING._replace(starved=len(requests))


class _Replay:
    def __init__(self, client: Client, requests: Requests, candidate: Candidate, config: QuotaConfig) -> None:
        profile = PROFILES[candidate.profile]
        windows = QuotaConfig(config.num_samples, config.window_ms, profile.rate)
        self._client = client
        self._manager = ClientQuotaManager(client.kind, windows, QuotaTable(profile.empty_client_id))
        self._manager.set_quota(_default_entity(client), candidate.quota)
        api_key = API_KEYS[client.kind]
        self._throttling = [profile.throttling_of(api_key, version) for version in requests.versions]
        self._is_open = candidate.loop == "open"
        self._has_one_lane = len(requests.versions) == 1 and not self._is_open
        self._starved = 0
        self.is_served = True
        if client.kind == "Fetch":
            most = self._manager.max_value_in_quota_window(client.user, client.client_id)
            requests = self._cut(requests, int(min(most, 2**62)), cuts=profile.cuts_fetches)
        self._requests = requests
        self._sensor: Sensor | None = None  # created by the first charge
        self._delays, self._added = Delays(), Delays()
        self._answers = 0
        self._last_ns = 0
        # Detached lanes: due time, row and wait of the next request.
        self._detached: list[tuple[int, int, int]] = []
        self._detached_lanes: set[int] = set()
        self._shift_ns = 0

    def run(self) -> Outcome:
        requests, detached = self._requests, self._detached
        at_ns, lane, count = requests.at_ns, requests.lane, len(requests)
        row = waited_ns = 0
        while row < count or detached:
            if detached:
                due_ns, its_row, its_wait_ns = detached[0]
                if row == count or (due_ns, its_row) <= (at_ns[row], row):
                    heappop(detached)
                    self._detached_lanes.discard(lane[its_row])
                    self._charge(its_row, due_ns, its_wait_ns, row)
                    continue
                if lane[row] in self._detached_lanes:
                    row += 1
                    continue
            if self._has_one_lane:
                served, waited_ns = self._charge_one_lane(row, at_ns[row] + self._shift_ns, waited_ns)
                row += served
            else:
                row += 1
                self._charge(row - 1, at_ns[row - 1], 0, row)
            if not detached and not waited_ns:
                row = self._run_within(row)
        return self._outcome()

    def _run_within(self, row: int) -> int:
        requests, shift_ns, sensor = self._requests, self._shift_ns, self._sensor
        at_ns, totals, count = requests.at_ns, requests.totals, len(requests)
        if sensor is None or row == count:
            return row
        room = sensor.room()
        until_ns, most = room.until_ms * _NS_PER_MS - shift_ns, totals[row] + room.value
        if totals[row + 1] >= most or at_ns[row] >= until_ns or at_ns[row] + shift_ns < room.from_ms * _NS_PER_MS:
            return row
        end = min(row + _FIRST_ROWS, count)
        if at_ns[end - 1] < until_ns and totals[end] < most:
            end = count
        end = bisect_left(at_ns, until_ns, row, end)
        end = bisect_left(totals, most, row, end + 1) - 1
        self._last_ns = at_ns[end - 1] + shift_ns
        sensor.record_in_room(float(totals[end] - totals[row]), end - row, self._last_ns // _NS_PER_MS)
        self._answers += end - row
        return end

    def _charge(self, row: int, due_ns: int, waited_ns: int, trace_row: int) -> None:
        requests = self._requests
        throttling = self._throttling[requests.lane[row]]
        throttle_ns = self._record(row, due_ns)
        if throttle_ns and self._retract(row, due_ns, throttling):
            self._detach(row, due_ns + throttle_ns, waited_ns + throttle_ns)
            return
        self._served(waited_ns, throttle_ns, throttling)
        after = requests.following[row]
        if after == len(requests):
            return
        if self._is_open:
            next_ns = max(requests.at_ns[after], due_ns + throttle_ns)
            next_wait_ns = next_ns - requests.at_ns[after]
        else:
            next_ns, next_wait_ns = _after(due_ns, requests.at_ns[after] - requests.at_ns[row], throttle_ns, throttling)
        if after < trace_row or next_ns != requests.at_ns[after]:
            self._detach(after, next_ns, next_wait_ns)

    def _charge_one_lane(self, row: int, due_ns: int, waited_ns: int) -> tuple[bool, int]:
        """Return whether the request is served, and the next request's wait."""
        requests, throttling = self._requests, self._throttling[0]
        throttle_ns = self._record(row, due_ns)
        if throttle_ns and self._retract(row, due_ns, throttling):
            self._shift_ns += throttle_ns
            return False, waited_ns + throttle_ns
        self._served(waited_ns, throttle_ns, throttling)
        if not throttle_ns or row + 1 == len(requests):
            return True, 0
        think_ns = requests.at_ns[row + 1] - requests.at_ns[row]
        next_ns, next_wait_ns = _after(due_ns, think_ns, throttle_ns, throttling)
        self._shift_ns = next_ns - requests.at_ns[row + 1]
        return True, next_wait_ns

    def _record(self, row: int, due_ns: int) -> int:
        now_ms = due_ns // _NS_PER_MS
        client, manager = self._client, self._manager
        if due_ns - self._last_ns > _EXPIRES_AFTER_NS:
            manager.expire(now_ms)
            self._sensor = None
        self._last_ns = due_ns
        self._answers += 1
        throttle_ms = manager.record(client.user, client.client_id, float(self._requests.value[row]), now_ms)
        if self._sensor is None:
            sensors = manager.peek_sensors(manager.rules.bucket(client.user, client.client_id))
            assert sensors is not None, "record() creates them"
            self._sensor = sensors.quota
        if throttle_ms:
            self._delays.add(throttle_ms, throttle_ms)
        return throttle_ms * _NS_PER_MS

    def _retract(self, row: int, due_ns: int, throttling: Throttling) -> bool:
        """Remove the charge of a muted fetch, whose response was empty; return whether it was one."""
        if throttling is not MUTE or self._client.kind != "Fetch":
            return False
        value = float(self._requests.value[row])
        self._manager.unrecord(self._client.user, self._client.client_id, value, due_ns // _NS_PER_MS)
        return True

    def _served(self, waited_ns: int, throttle_ns: int, throttling: Throttling) -> None:
        added_ns = waited_ns if throttling is MUTE else waited_ns + throttle_ns
        if added_ns:
            added_ms = added_ns // _NS_PER_MS
            self._added.add(added_ms, _rounded(added_ms))

    def _detach(self, row: int, due_ns: int, waited_ns: int) -> None:
        self._detached_lanes.add(self._requests.lane[row])
        heappush(self._detached, (due_ns, row, waited_ns))

    def _cut(self, requests: Requests, most: int, *, cuts: bool) -> Requests:
        """Split fetches that are larger than `most`, or count them as starved."""
        if requests.largest <= most or not (cuts or {HOLD, MUTE} & set(self._throttling)):
            return requests  # WITHHOLD delays a response of any size but sends it
        rows: list[tuple[int, int, int]] = []
        for at_ns, value, lane in zip(requests.at_ns, requests.value, requests.lane, strict=True):
            whole, rest = divmod(value, most)
            if value <= most:
                rows.append((at_ns, value, lane))
            elif cuts:
                rows += [(at_ns, part, lane) for part in [most] * whole + [rest] * (rest > 0)]
            else:
                self._starved += 1
        if not rows:
            self.is_served = False
            return requests
        times, values, lanes = (list(column) for column in zip(*rows, strict=True))
        return Requests(times, values, lanes, requests.versions)

    def _outcome(self) -> Outcome:
        requests = self._requests
        count, total = len(requests), requests.totals[-1]
        traced_ms = (requests.at_ns[-1] - requests.at_ns[0]) / _NS_PER_MS
        span_ms = (self._last_ns - requests.at_ns[0]) / _NS_PER_MS
        p50, p95, p99 = self._delays.percentiles((0.5, 0.95, 0.99), self._answers)
        added_p50, added_p99 = self._added.percentiles((0.5, 0.99), count)
        return Outcome(
            requests=count,
            answers=self._answers,
            throttled=self._delays.count,
            starved=self._starved,
            delay_p50_ms=p50,
            delay_p95_ms=p95,
            delay_p99_ms=p99,
            delay_max_ms=self._delays.maximum,
            delay_total_ms=self._delays.total,
            added_p50_ms=added_p50,
            added_p99_ms=added_p99,
            added_max_ms=self._added.maximum,
            added_total_ms=self._added.total,
            bytes=total,
            span_ms=span_ms,
            offered_rate=total / max(traced_ms, _LEAST_SPAN_MS) * 1e3,
            achieved_rate=total / max(span_ms, _LEAST_SPAN_MS) * 1e3,
        )


def _after(due_ns: int, think_ns: int, throttle_ns: int, throttling: Throttling) -> tuple[int, int]:
    """Return when a closed-loop client sends its next request, and the delay that a mute adds to its think time."""
    if throttling is MUTE:
        return due_ns + max(think_ns, throttle_ns), max(0, throttle_ns - think_ns)
    return due_ns + throttle_ns + think_ns, 0


def _default_entity(client: Client) -> QuotaEntity:
    return QuotaEntity(DEFAULT if client.user else None, DEFAULT if client.client_id or not client.user else None)


def _rounded(ms: int) -> int:
    """Return `ms` rounded down by less than 1/128, so that a queue that grows for hours has few distinct waits."""
    bits = max(0, ms.bit_length() - 8)
    return ms >> bits << bits

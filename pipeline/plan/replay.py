"""What a quota would have done to one client on one broker: its requests again, in virtual time.

Theory of operation. The requests of a client are known with the time at which each was charged. They are charged again,
by the broker's own arithmetic (`sluice.quotas`) and in the order of virtual time, to a sensor that has the candidate's
bound. A request over it makes its connection wait, as the candidate's profile has it (KIP-13: the answer is held back;
KIP-219: it goes out and the connection is muted; a muted fetch brought nothing, is taken back and comes again). Other
connections of the client go on: they share the sensor, not the wait. What a wait does to the requests that follow on
its connection is what the two loops differ in:

- open: they come when they came, and queue up. For clients that are driven by something that does not wait.
- closed: the client sends the next one when it has its answer and did what it did between the two before, its own
  time. Behind a held answer own time begins when that goes out; behind a mute the wait and own time run together.

So in both a connection follows the trace until it has waited. From then on it is kept apart, with the time at which its
next request is due, until that is the trace's time again. A client with one connection that closes the loop is only
shifted: what follows comes as it came, so much later.

While every connection follows the trace, charges that are surely within the bound are recorded as runs, found by
bisection (`Sensor.room`): a client far from its quota costs a few steps a second, however many requests it sends.

Pure: no clock, nothing random, no I/O. Times are nanoseconds, of charges whole milliseconds, as in the broker.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Literal, NamedTuple

from sluice.broker.throttling.profile import HOLD, MUTE, PROFILES, Throttling
from sluice.pipeline.charges.charges import Client, Kind, Requests
from sluice.protocol.apis import ApiKey
from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import INACTIVE_SENSOR_EXPIRATION_MS, ClientQuotaManager, QuotaConfig
from sluice.quotas.sensor import Sensor

Loop = Literal["closed", "open"]
LOOPS: tuple[Loop, ...] = ("closed", "open")
API_KEYS: dict[Kind, int] = {"Produce": ApiKey.PRODUCE, "Fetch": ApiKey.FETCH}

_MS = 1_000_000  # nanoseconds
_LEAST_SPAN_MS = 1000.0  # a rate over less than a second would say nothing
_FORGOTTEN_AFTER_NS = INACTIVE_SENSOR_EXPIRATION_MS * _MS
_FIRST_LOOK = 64  # rows that are looked at before all that follow are: most runs are short


class Candidate(NamedTuple):
    """A quota to try."""

    quota: float  # bytes/s on one broker
    profile: str  # of `PROFILES`
    loop: Loop


class Delays:
    """Times in milliseconds and how often each came, of `count` requests most of which had none."""

    __slots__ = ("_counts", "maximum", "total")

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.total = 0
        self.maximum = 0

    def add(self, ms: int, kept_as: int) -> None:
        """`kept_as` is what percentiles know of it."""
        self._counts[kept_as] += 1
        self.total += ms
        self.maximum = max(self.maximum, ms)

    @property
    def count(self) -> int:
        return self._counts.total()

    def percentiles(self, shares: Sequence[float], count: int) -> list[int]:
        """For each share (ascending) the least time that so much of all `count` are at most; 0 is not kept."""
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
    """What a candidate did to a client. Delays are the throttle times that answers told; of all answers, 0 included."""

    requests: int  # as they were, those of a fetch that was cut each by itself
    answers: int  # requests, and fetches that came back empty
    throttled: int  # answers with a throttle time
    starved: int  # fetches larger than an idle client may have at once, which the profile does not cut: never served
    delay_p50_ms: int
    delay_p95_ms: int
    delay_p99_ms: int
    delay_max_ms: int
    delay_total_ms: int
    added_p50_ms: int  # added latency: how much later than without a quota a request had its answer
    added_p99_ms: int
    added_max_ms: int
    added_total_ms: int
    bytes: int
    span_ms: float  # virtual, from the first charge to the last
    offered_rate: float  # bytes/s over the time of the trace
    achieved_rate: float  # over `span_ms`

    @property
    def throttled_share(self) -> float:
        return self.throttled / self.answers if self.answers else 0.0


_NOTHING = Outcome._make([0] * len(Outcome._fields))


def replay(client: Client, requests: Requests, candidate: Candidate, config: QuotaConfig | None = None) -> Outcome:
    """Charges `requests` under `candidate`. `config` has the windows; its arithmetic is the profile's."""
    found = _Replay(client, requests, candidate, config or QuotaConfig())
    return found.run() if found.is_served else _NOTHING._replace(starved=len(requests))


class _Replay:
    """One replay: the sensor, who waits, and what was found."""

    def __init__(self, client: Client, requests: Requests, candidate: Candidate, config: QuotaConfig) -> None:
        profile = PROFILES[candidate.profile]
        windows = QuotaConfig(config.num_samples, config.window_ms, profile.rate)
        self._client = client
        self._manager = ClientQuotaManager(client.kind, windows, QuotaTable(profile.empty_client_id))
        self._manager.set_quota(_everyone_like(client), candidate.quota)
        api_key = API_KEYS[client.kind]
        self._throttling = [profile.throttling_of(api_key, version) for version in requests.versions]
        self._is_open = candidate.loop == "open"
        self._is_alone = len(requests.versions) == 1 and not self._is_open
        self._starved = 0
        self.is_served = True  # anything at all
        if client.kind == "Fetch":
            most = self._manager.max_value_in_quota_window(client.user, client.client_id)
            requests = self._cut(requests, int(min(most, 2**62)), cuts=profile.cuts_fetches)
        self._requests = requests
        self._sensor: Sensor | None = None  # there with the first charge
        self._delays, self._added = Delays(), Delays()
        self._answers = 0
        self._last_ns = 0
        # Who is apart from the trace: when its request is due, which that is, and how long it has waited by then.
        self._apart: list[tuple[int, int, int]] = []
        self._lanes_apart: set[int] = set()
        self._shift_ns = 0

    def run(self) -> Outcome:
        requests, apart = self._requests, self._apart
        at_ns, lane, count = requests.at_ns, requests.lane, len(requests)
        row = waited_ns = 0
        while row < count or apart:
            if apart:
                due_ns, its_row, its_wait_ns = apart[0]
                if row == count or (due_ns, its_row) <= (at_ns[row], row):
                    heappop(apart)
                    self._lanes_apart.discard(lane[its_row])
                    self._charge(its_row, due_ns, its_wait_ns, row)
                    continue
                if lane[row] in self._lanes_apart:
                    row += 1
                    continue
            if self._is_alone:
                served, waited_ns = self._charge_alone(row, at_ns[row] + self._shift_ns, waited_ns)
                row += served
            else:
                row += 1
                self._charge(row - 1, at_ns[row - 1], 0, row)
            if not apart and not waited_ns:
                row = self._run_within(row)
        return self._outcome()

    def _run_within(self, row: int) -> int:
        """Records what follows in the trace and is surely within the bound; returns the row that comes after it."""
        requests, shift_ns, sensor = self._requests, self._shift_ns, self._sensor
        at_ns, totals, count = requests.at_ns, requests.totals, len(requests)
        if sensor is None or row == count:
            return row
        room = sensor.room()
        until_ns, most = room.until_ms * _MS - shift_ns, totals[row] + room.value
        if totals[row + 1] >= most or at_ns[row] >= until_ns or at_ns[row] + shift_ns < room.from_ms * _MS:
            return row
        end = min(row + _FIRST_LOOK, count)
        if at_ns[end - 1] < until_ns and totals[end] < most:
            end = count
        end = bisect_left(at_ns, until_ns, row, end)
        end = bisect_left(totals, most, row, end + 1) - 1
        self._last_ns = at_ns[end - 1] + shift_ns
        sensor.record_in_room(float(totals[end] - totals[row]), end - row, self._last_ns // _MS)
        self._answers += end - row
        return end

    def _charge(self, row: int, due_ns: int, waited_ns: int, trace_row: int) -> None:
        """Charges one request, and says when its lane's next is due. The trace is at `trace_row`."""
        requests = self._requests
        throttling = self._throttling[requests.lane[row]]
        throttle_ns = self._record(row, due_ns)
        if throttle_ns and self._takes_back(row, due_ns, throttling):
            self._set_apart(row, due_ns + throttle_ns, waited_ns + throttle_ns)
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
            self._set_apart(after, next_ns, next_wait_ns)

    def _charge_alone(self, row: int, due_ns: int, waited_ns: int) -> tuple[bool, int]:
        """The same where one connection closes the loop: whether it was served, and how long the next one waits."""
        requests, throttling = self._requests, self._throttling[0]
        throttle_ns = self._record(row, due_ns)
        if throttle_ns and self._takes_back(row, due_ns, throttling):
            self._shift_ns += throttle_ns
            return False, waited_ns + throttle_ns
        self._served(waited_ns, throttle_ns, throttling)
        if not throttle_ns or row + 1 == len(requests):
            return True, 0
        own_ns = requests.at_ns[row + 1] - requests.at_ns[row]
        next_ns, next_wait_ns = _after(due_ns, own_ns, throttle_ns, throttling)
        self._shift_ns = next_ns - requests.at_ns[row + 1]
        return True, next_wait_ns

    def _record(self, row: int, due_ns: int) -> int:
        """Charges one request; returns the throttle time in nanoseconds."""
        now_ms = due_ns // _MS
        client, manager = self._client, self._manager
        if due_ns - self._last_ns > _FORGOTTEN_AFTER_NS:
            manager.expire(now_ms)
            self._sensor = None
        self._last_ns = due_ns
        self._answers += 1
        throttle_ms = manager.record(client.user, client.client_id, float(self._requests.value[row]), now_ms)
        if self._sensor is None:
            sensors = manager.peek_sensors(manager.rules.bucket(client.user, client.client_id))
            assert sensors is not None, "it was just recorded to"
            self._sensor = sensors.quota
        if throttle_ms:
            self._delays.add(throttle_ms, throttle_ms)
        return throttle_ms * _MS

    def _takes_back(self, row: int, due_ns: int, throttling: Throttling) -> bool:
        """A fetch over quota that is muted sent nothing, costs nothing and comes again."""
        if throttling is not MUTE or self._client.kind != "Fetch":
            return False
        value = float(self._requests.value[row])
        self._manager.unrecord(self._client.user, self._client.client_id, value, due_ns // _MS)
        return True

    def _served(self, waited_ns: int, throttle_ns: int, throttling: Throttling) -> None:
        added_ns = waited_ns if throttling is MUTE else waited_ns + throttle_ns
        if added_ns:
            added_ms = added_ns // _MS
            self._added.add(added_ms, _rounded(added_ms))

    def _set_apart(self, row: int, due_ns: int, waited_ns: int) -> None:
        self._lanes_apart.add(self._requests.lane[row])
        heappush(self._apart, (due_ns, row, waited_ns))

    def _cut(self, requests: Requests, most: int, *, cuts: bool) -> Requests:
        """Fetches as a broker would give them: at most so much at once."""
        if requests.largest <= most or not (cuts or {HOLD, MUTE} & set(self._throttling)):
            return requests  # what is held when it was read is served in the end, whatever its size
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
        traced_ms = (requests.at_ns[-1] - requests.at_ns[0]) / _MS
        span_ms = (self._last_ns - requests.at_ns[0]) / _MS
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


def _after(due_ns: int, own_ns: int, throttle_ns: int, throttling: Throttling) -> tuple[int, int]:
    """When a client that closes the loop sends again, and how much of that time only the mute is to blame for."""
    if throttling is MUTE:
        return due_ns + max(own_ns, throttle_ns), max(0, throttle_ns - own_ns)
    return due_ns + throttle_ns + own_ns, 0


def _everyone_like(client: Client) -> QuotaEntity:
    """The default entity of the level that the client is counted at: there its quota is that of every such client."""
    return QuotaEntity(DEFAULT if client.user else None, DEFAULT if client.client_id or not client.user else None)


def _rounded(ms: int) -> int:
    """To 1/128 of it at least, downwards, so that a queue that grows for hours has few different waits."""
    bits = max(0, ms.bit_length() - 8)
    return ms >> bits << bits

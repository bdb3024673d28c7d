"""Made-up traces for the tests of the page: any number of requests, with every tone, mark and section of state."""

from random import Random

import msgspec

from sluice.trace.model import Comparison, Difference, Trace

PARTITIONS = 12
GLYPHS = {"opened": "▸", "closed": "◂", "fault": "✗", "leader": "★", "commit": "✓", "log": "≡"}
_OUTCOMES = [
    {"name": "no error", "tone": "ok"},
    {"name": "NOT_LEADER_OR_FOLLOWER", "tone": "error"},
    {"name": "throttled", "tone": "throttled"},
    {"name": "fault rule", "tone": "fault"},
    {"name": "no response", "tone": "lost"},
    {"name": "Stable", "tone": "state"},
    {"name": "passed", "tone": "neutral"},
]
_OK, _ERROR, _THROTTLED, _FAULT, _LOST, _STATE, _PASSED = range(len(_OUTCOMES))
_APIS = ("Produce v9", "Fetch v13", "Heartbeat v4", "Metadata v12", "OffsetCommit v8")
_BAR_COLUMNS = ("lane", "start", "end", "outcome", "text", "seq", "parked", "throttle", "attempt", "detail")


def trace(requests: int = 400, clients: int = 6, title: str = "test_orders_are_read") -> Trace:
    """Return a trace of `requests` requests, 4 ms apart."""
    random = Random(1)
    lanes = [_lane("test", "test", "test")]
    first_broker = 1 + clients * 2
    for number in range(1, first_broker):
        owner = ("shop", "reader", "billing", "audit")[(number - 1) // 2 % 4] + f"-{(number - 1) // 2}"
        lanes.append(_lane(f"c{number}", "client", f"{owner} #{number}", owner, [first_broker + number % 3]))
    lanes += [_lane(f"b{each}", "broker", f"broker {each}") for each in range(3)]
    lanes += [_lane(f"p{each}", "partition", f"orders-{each}", "orders") for each in range(PARTITIONS)]
    lanes += [_lane("g", "group", "readers"), _lane("t", "transaction", "payments")]
    first_partition = first_broker + 3
    end = requests * 4000 + 50_000
    texts = ["setup", "call", "Stable", *(f"{api} orders-{each}" for api in _APIS for each in range(PARTITIONS))]
    details: list[list[list[str]]] = []
    bars: list[tuple[int, ...]] = [
        (0, 0, 20_000, _PASSED, 0, -1, 0, 0, -1, -1),
        (0, 20_000, end, _ERROR, 1, -1, 0, 0, -1, -1),
        (len(lanes) - 2, 30_000, end // 2, _STATE, 2, 1, 0, 0, -1, -1),
    ]
    marks: dict[str, list[object]] = {"lane": [], "at": [], "tone": [], "text": [], "seq": [], "glyph": []}
    links: list[list[int]] = []
    state: list[list[object]] = [[0, "brokers", f"broker {each}", "running"] for each in range(3)]
    state += [[0, "leaders", f"orders-{each}", f"{each % 3} epoch 0, ISR 0 1 2"] for each in range(PARTITIONS)]

    def mark(lane: int, at: int, tone: str, text: str, glyph: str) -> None:
        texts.append(text)
        for name, value in zip(marks, (lane, at, tone, len(texts) - 1, 0, GLYPHS[glyph]), strict=True):
            marks[name].append(value)

    for lane in range(1, 1 + clients * 2):
        mark(lane, 20_000 + lane * 500, "neutral", "connected", "opened")
        mark(lane, end - 2000 - lane * 10, "neutral", "closed by the client", "closed")
    for number in range(requests):
        at = 30_000 + number * 4000
        connection, api, partition = (random.randrange(each) for each in (clients * 2, len(_APIS), PARTITIONS))
        tone = random.choices((_OK, _ERROR, _THROTTLED, _FAULT, _LOST), (90, 3, 3, 2, 1))[0]
        took = int(random.expovariate(1 / (9000 if api == 1 else 2500))) + 150
        parked = took * 3 // 4 if api == 1 else 0
        throttle = random.randrange(4000, 30_000) if tone == _THROTTLED else 0
        text = 3 + api * PARTITIONS + partition
        attempt = -1
        if links and tone == _ERROR and random.random() < 0.5 and links[-1][1] < len(bars):
            attempt = number
        details.append([["correlation id", str(number)], ["request", f"{random.randrange(60, 9000)} bytes"]])
        if tone == _ERROR:
            details[-1].append(["error", "NOT_LEADER_OR_FOLLOWER"])
            links.append([len(bars), len(bars) + 1])
            attempt = number
        if tone == _FAULT:
            mark(1 + connection, at, "fault", "rule fault-1: error", "fault")
        row = (1 + connection, at, at + took, tone, text, number + 2, parked, throttle, attempt, number)
        bars.append(row)
        if number % 4 == 0 and api < 2:
            bars.append((first_partition + partition, *row[1:]))
        if number % 7 == 0:
            state.append([at, "offsets", f"orders-{partition}", f"high watermark {number}, last stable {number}"])
        if api == 4:
            mark(first_partition + partition, at, "ok", f"readers committed {number}", "commit")
            state.append([at, "committed", f"readers orders-{partition}", str(number)])
    links = [each for each in links if each[1] < len(bars)]
    moved = end * 3 // 5
    mark(first_partition, moved, "state", "leader 0 → 1, epoch 1", "leader")
    state.append([moved, "leaders", "orders-0", "1 epoch 1, ISR 1 2"])
    state.append([moved, "brokers", "broker 0", "stopped"])
    state.sort(key=lambda each: int(str(each[0])))
    errors = [number for number, bar in enumerate(bars) if bar[3] == _ERROR and bar[0] > 0]
    built = {
        "version": 1,
        "title": title,
        "subtitle": "tests/test_orders.py",
        "result": "failed",
        "start_ns": 1_795_000_000_000_000_000,
        "end": end,
        "lanes": lanes,
        "bars": {name: list(column) for name, column in zip(_BAR_COLUMNS, zip(*bars, strict=True), strict=True)},
        "outcomes": _OUTCOMES,
        "texts": texts,
        "details": details,
        "marks": marks,
        "links": links,
        "state": state,
        "findings": [
            {
                "id": "delivery-ended",
                "severity": "error",
                "title": "shop-0 retried until its delivery timeout",
                "text": "All attempts for orders-0 failed with NOT_LEADER_OR_FOLLOWER; delivery.timeout.ms ended them.",
                "at": bars[errors[-1]][1],
                "bars": errors[-3:],
                "marks": [],
            },
            {
                "id": "rule-hit",
                "severity": "warning",
                "title": "Rule fault-1 hit 12 requests",
                "text": "It is still active at the end of the test.",
                "at": moved,
                "bars": errors[:1],
                "marks": [0],
            },
            {
                "id": "unclosed-client",
                "severity": "info",
                "title": "reader-1 was not closed",
                "text": "Its connection was open when the broker stopped.",
                "at": end - 2000,
                "bars": [],
                "marks": [1],
            },
        ],
        "phases": [
            {"name": "setup", "start": 0, "end": 20_000, "result": "passed"},
            {"name": "call", "start": 20_000, "end": end - 4000, "result": "failed"},
            {"name": "teardown", "start": end - 4000, "end": end, "result": "passed"},
        ],
        "logs": [
            [at * 4000 + 30_000, ("INFO", "WARNING", "ERROR")[at % 3], "kafka.producer", f"Expiring batch {at}"]
            for at in range(0, requests, 9)
        ],
        "failure": {
            "text": "AssertionError: 3 orders are missing",
            "file": "tests/test_orders.py",
            "line": 42,
            "at": end - 5000,
        },
    }
    return msgspec.convert(built, Trace)


def _lane(lane_id: str, group: str, label: str, owner: str = "", relates: list[int] | None = None) -> dict[str, object]:
    return {
        "id": lane_id,
        "group": group,
        "owner": owner,
        "label": label,
        "detail": f"the {group} {label}",
        "relates": relates or [],
    }


def compared(requests: int = 200) -> Trace:
    """Return a failed trace with the passing one: the same until a request fails."""
    here = trace(requests)
    there = trace(requests, title="test_orders_are_read (passed)")
    there.result, there.failure, there.findings = "passed", None, []
    there.bars.outcome = [outcome if outcome >= _STATE else _OK for outcome in there.bars.outcome]
    here.compare = Comparison(
        other=there,
        pairs=[(each, each) for each in range(len(here.bars.start))],
        differences=[
            Difference(here.bars.start[each], f"{here.outcomes[outcome].name} here, no error there", each, each)
            for each, outcome in enumerate(here.bars.outcome)
            if outcome != there.bars.outcome[each]
        ],
    )
    return here

"""A trace as Chrome trace events in JSON, which ui.perfetto.dev and chrome://tracing open.

A process is a group of lanes (a client, the partitions of a topic), a thread a lane. Bars are complete events ("X"),
which overlap in a lane if requests are pipelined: Perfetto requires nesting, so those are async events ("b", "e").
Marks are instants ("i"); links of attempts are flows ("s", "f").

Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format).
"""

from collections.abc import Iterator

import msgspec

from .model import NONE, Trace

Event = dict[str, object]


def perfetto(trace: Trace) -> bytes:
    """Return the JSON."""
    events = [*_names(trace), *_bars(trace), *_marks(trace), *_links(trace)]
    other = {"title": trace.title, "result": trace.result, "start_ns": trace.start_ns}
    return msgspec.json.encode({"traceEvents": events, "displayTimeUnit": "ms", "otherData": other})


def _processes(trace: Trace) -> list[int]:
    """Return the process of each lane: the number of its group and owner."""
    numbers: dict[tuple[str, str], int] = {}
    return [numbers.setdefault((lane.group, lane.owner), len(numbers) + 1) for lane in trace.lanes]


def _place(trace: Trace, processes: list[int], lane: int) -> Event:
    return {"pid": processes[lane], "tid": lane + 1}


def _names(trace: Trace) -> Iterator[Event]:
    processes = _processes(trace)
    for number, lane in enumerate(trace.lanes):
        place = _place(trace, processes, number)
        name = f"{lane.group} {lane.owner}".strip()
        yield {"ph": "M", "name": "process_name", **place, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", **place, "args": {"sort_index": processes[number]}}
        yield {"ph": "M", "name": "thread_name", **place, "args": {"name": lane.label}}
        yield {"ph": "M", "name": "thread_sort_index", **place, "args": {"sort_index": number}}


def _bars(trace: Trace) -> Iterator[Event]:
    bars, processes = trace.bars, _processes(trace)
    busy_until: dict[int, int] = {}
    for bar, lane in enumerate(bars.lane):
        start, end = bars.start[bar], bars.end[bar]
        outcome = trace.outcomes[bars.outcome[bar]]
        common: Event = {
            "name": trace.texts[bars.text[bar]],
            "cat": outcome.tone,
            **_place(trace, processes, lane),
            "ts": start,
        }
        args = _args(trace, bar)
        if start >= busy_until.get(lane, 0):
            busy_until[lane] = end
            yield {"ph": "X", **common, "dur": end - start, "args": args}
        else:
            yield {"ph": "b", "id": bar, **common, "args": args}
            yield {"ph": "e", "id": bar, **common, "ts": end}


def _args(trace: Trace, bar: int) -> dict[str, object]:
    bars = trace.bars
    args: dict[str, object] = {"outcome": trace.outcomes[bars.outcome[bar]].name}
    numbers = {
        "correlation_id": bars.correlation_id[bar],
        "request_bytes": bars.request_bytes[bar],
        "response_bytes": bars.response_bytes[bar],
    }
    args |= {name: number for name, number in numbers.items() if number != NONE}
    waits = {"parked_ms": bars.parked[bar] / 1000, "throttle_time_ms": bars.throttle[bar] / 1000}
    args |= {name: number for name, number in waits.items() if number}
    return args | (dict(trace.details[bars.detail[bar]]) if bars.detail[bar] != NONE else {})


def _marks(trace: Trace) -> Iterator[Event]:
    marks, processes = trace.marks, _processes(trace)
    for number, lane in enumerate(marks.lane):
        yield {
            "ph": "i",
            "s": "t",  # of its thread
            "name": trace.texts[marks.text[number]],
            "cat": marks.tone[number],
            **_place(trace, processes, lane),
            "ts": marks.at[number],
        }


def _links(trace: Trace) -> Iterator[Event]:
    bars, processes = trace.bars, _processes(trace)
    for number, (before, after) in enumerate(trace.links):
        common = {"name": "retry", "cat": "retry", "id": number}
        yield {"ph": "s", **common, **_place(trace, processes, bars.lane[before]), "ts": bars.start[before]}
        yield {"ph": "f", "bp": "e", **common, **_place(trace, processes, bars.lane[after]), "ts": bars.start[after]}

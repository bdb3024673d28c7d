"""The report of a search, as text: what was tried, what breaks the program, and how to repeat it."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from sluice.explore.execution import Options
from sluice.explore.reduction import Found
from sluice.explore.search import Result, coverage

from .regression import Explored, regression_test

_MOST_STEPS = 14
_PROCESSED = re.compile(r"(.* processes .*) offset (\d+)((?: again)?)")
_GROUP = re.compile(r"group .* is ")


def report(result: Result, options: Options, test: Explored | None) -> str:
    """Return the report of a search or, without a test, of a run that was repeated."""
    return "\n".join(_lines(result, options, test))


def document(result: Result, options: Options, test: Explored) -> dict[str, object]:
    """Return the report as JSON."""
    found = result.found
    tried = {"runs": result.runs, "requests": result.points, "states": result.covered, "missed": result.missed}
    tried |= {"pairs_in_both_orders": result.orders, "pairs_in_one_order": len(result.one_order)}
    if found is None:
        return {**tried, "seed": options.seed, "found": None}
    return {
        **tried,
        "seed": options.seed,
        "found": {
            "error": found.outcome.error,
            "failures": [{"replay": str(each), "text": each.sentence} for each in found.schedule.injections],
            "order": found.schedule.order,
            "sizes": dict(found.schedule.sizes),
            "happened": [{"at_s": at_s, "text": text} for at_s, text in found.outcome.happened],
            "test": regression_test(test, found.schedule, options),
        },
    }


def _lines(result: Result, options: Options, test: Explored | None) -> Iterator[str]:
    found = result.found
    tried = f"{result.runs} runs, failures at {result.points} requests, {result.covered} different states"
    if found is None:
        yield f"no failure found: {tried}"
        if result.missed:
            yield f"in {result.missed} runs, a failure was not injected, because its request was not sent"
        yield from coverage(result)
        return
    if not found.schedule.injections and not found.schedule.order:
        yield "the program fails without any failure of the cluster:"
        yield f"  {found.outcome.error}"
        return
    searched = "" if test is None else f" ({tried}, seed {options.seed})"
    yield f"{_subject(found)} the program{searched}:"
    for injection in found.schedule.injections:
        yield f"  {injection.sentence}"
    if found.schedule.order:
        yield f"  events happen in another order (order {found.schedule.order})"
    yield f"then: {found.outcome.error}"
    yield "what happened:"
    yield from _steps(found)
    if test is not None:
        yield "a test that repeats this run without a search:"
        yield ""
        yield regression_test(test, found.schedule, options)


def _subject(found: Found) -> str:
    count = len(found.schedule.injections)
    if not count:
        return "another order of events breaks"
    return "1 failure breaks" if count == 1 else f"{count} failures break"


def _steps(found: Found) -> Iterator[str]:
    """Yield the steps around the failures, numbered."""
    happened = list(_short(found.outcome.happened))
    sentences = {each.sentence for each in found.schedule.injections}
    first = next((number for number, (_, text) in enumerate(happened) if text in sentences), len(happened))
    begin = max(0, first - _MOST_STEPS // 3)
    if begin:
        yield f"  ... {begin} earlier"
    shown = happened[begin : begin + _MOST_STEPS]
    for number, (at_s, text) in enumerate(shown, 1):
        yield f"  {number}. +{at_s:.3f} s: {text}"
    later = len(happened) - begin - len(shown)
    if later:
        yield f"  ... {later} later"


def _short(happened: Sequence[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """Yield the steps, with records that were processed one after another, and the states of a rebalance, as one."""
    for _, steps in groupby(happened, lambda step: _kind(step[1])):
        first, *others = steps
        (at_s, text), last = first, others[-1][1] if others else ""
        records, until = _PROCESSED.fullmatch(text), _PROCESSED.fullmatch(last)
        if records and until:
            yield at_s, f"{records[1]} offsets {records[2]} to {until[2]}{records[3]}"
        else:
            yield others[-1] if others else first


def _kind(text: str) -> str:
    """Return what steps that are shown as one have in common."""
    if records := _PROCESSED.fullmatch(text):
        return records[1] + records[3]
    state = _GROUP.match(text)
    return state[0] if state else text

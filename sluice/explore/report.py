"""The report of a search, as text: what was tried, what breaks the program, and how to repeat it."""

from collections.abc import Iterator

from .execution import Schedule
from .reduction import Found
from .search import Result

_MOST_STEPS = 14


def report(result: Result) -> str:
    return "\n".join(_lines(result))


def arguments(schedule: Schedule) -> str:
    """Return the arguments of the mark, or of `replay`, that repeat the schedule."""
    order = f", order={schedule.order}" if schedule.order else ""
    return f"replay={[str(each) for each in schedule.injections]!r}{order}"


def _lines(result: Result) -> Iterator[str]:
    found = result.found
    tried = f"{result.runs} runs, failures at {result.points} requests, {result.covered} different states"
    if found is None:
        yield f"no failure found: {tried}"
        if result.missed:
            yield f"in {result.missed} runs, a failure was not injected, because its request was not sent"
        return
    if not found.schedule.injections and not found.schedule.order:
        yield "the program fails without any failure of the cluster:"
        yield f"  {found.outcome.error}"
        return
    yield f"{_subject(found)} the program ({tried}):"
    for injection in found.schedule.injections:
        yield f"  {injection.sentence}"
    if found.schedule.order:
        yield f"  bytes of connections are delayed (order {found.schedule.order})"
    yield f"then: {found.outcome.error}"
    yield "what happened:"
    yield from _steps(found)
    yield "to repeat this run without a search, add to the mark kafka_explore:"
    yield f"  {arguments(found.schedule)}"


def _subject(found: Found) -> str:
    count = len(found.schedule.injections)
    if not count:
        return "delays break"
    return "1 failure breaks" if count == 1 else f"{count} failures break"


def _steps(found: Found) -> Iterator[str]:
    """Yield the steps around the failures, numbered."""
    happened = found.outcome.happened
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

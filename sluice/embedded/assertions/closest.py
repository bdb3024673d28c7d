"""The event that comes closest to what an assertion or a wait expected, and in what it differs."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeVar

from sluice.broker.journal.format_event import format_event
from sluice.journal_events import AnyEvent, Event

_E = TypeVar("_E", bound=Event)


def closest(
    events: Iterable[AnyEvent],
    kind: type[_E],
    wanted: Mapping[str, str | int | Collection[str] | Collection[int]],
    where: Callable[[_E], object] | None = None,
) -> list[str]:
    """Return two lines about the latest event of a kind that differs least but does differ; none if all differ most.

    Args:
        events: The events to choose from.
        kind: The type of the event.
        wanted: The accepted values of fields; empty ones accept all. The first fields are the most important.
        where: A predicate, which sees only events that have the wanted values.
    """
    accepted = {name: values for name, given in wanted.items() if (values := _several(given))}
    best, least = None, [True] * len(accepted)
    for event in events:
        if isinstance(event, kind):
            differs = [getattr(event, name, None) not in values for name, values in accepted.items()]
            if not any(differs) and (where is None or where(event)):
                continue
            if best is None or (sum(differs), differs) <= (sum(least), least):
                best, least = event, differs
    if best is None or (accepted and all(least)):
        return []
    return [
        f"the closest event: {format_event(best)}",
        f"  {', '.join(_differences(best, accepted)) or '`where` is false'}",
    ]


def _several(given: str | int | Collection[str] | Collection[int]) -> Collection[object]:
    return (given,) if isinstance(given, str | int) else given


def _differences(event: Event, accepted: Mapping[str, Collection[object]]) -> Iterator[str]:
    for name, values in accepted.items():
        found = getattr(event, name, "")
        if found not in values:
            yield f"{name} is {found!r}, expected {' or '.join(map(repr, values))}"

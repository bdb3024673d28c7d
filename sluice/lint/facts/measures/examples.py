"""Events that show something, as evidence."""

from collections.abc import Iterable
from typing import NamedTuple, Self

from sluice.journal_events import Event, Request

MOST_EXAMPLES = 5


class Example(NamedTuple):
    """A request or another event that shows something."""

    seq: int
    at_ns: int
    attempt: str = ""


class Examples(list[Example]):
    """The first few examples of something."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> Self:
        found = cls()
        for event in events:
            found.note(event)
        return found

    def note(self, event: Event) -> None:
        if len(self) < MOST_EXAMPLES:
            self.append(Example(event.seq, event.at_ns, event.attempt_key if isinstance(event, Request) else ""))

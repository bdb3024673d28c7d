"""The budget and the progress of an audit."""

from typing import Literal, NamedTuple

Phase = Literal["measuring", "judging", "done"]


class Budget(NamedTuple):
    """The limits for one subject.

    seconds: no run starts that would end later
    at_once: parallel runs; they mostly wait, but more of them increase the lag
    """

    seconds: float = 330.0
    at_once: int = 7


DEFAULT_BUDGET = Budget()


class Progress(NamedTuple):
    """The progress of an audit, reported at each change.

    planned: planned runs; grows if verdicts are uncertain
    seconds: since the start of the subject
    """

    subject: str
    phase: Phase
    done: int
    planned: int
    running: tuple[str, ...]
    seconds: float

"""What an audit may take, and what it tells while it runs."""

from typing import Literal, NamedTuple

Phase = Literal["measuring", "judging", "done"]


class Budget(NamedTuple):
    """What may be spent on one subject.

    seconds: no run begins that would end later
    at_once: how many runs there are at the same time. They mostly wait: more of them make each other late
    """

    seconds: float = 330.0
    at_once: int = 6


DEFAULT_BUDGET = Budget()


class Progress(NamedTuple):
    """How far an audit is, at each change.

    subject: whose turn it is
    phase: what is done
    done: how many runs were
    planned: how many there are to be; more, where verdicts are unsure
    running: the probes under way
    seconds: since the subject's turn began
    """

    subject: str
    phase: Phase
    done: int
    planned: int
    running: tuple[str, ...]
    seconds: float

"""All findings, the most probable cause of a failed test first.

Findings are sorted by severity, then those first that name a fault rule which fired, then by the order of `FINDERS`,
which puts causes before effects, then by time. A finding whose names (client, topic, group, rule) are in the text of
the failed assertion is one severity higher. The first finding of a failed test is an error, if it can be a cause.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from .brokers import broker_states, elections, leaders_moved
from .clients import connections_refused, lost_events, no_requests, nothing_produced, unclosed_client
from .consumers import nothing_read, without_offsets
from .errors import authorization_failed, not_retriable, unknown_topic
from .faults import rule_hits, rule_never_fired, scenario_steps
from .groups import acquisition_timeouts, commit_went_back, rebalance_loop
from .history import Found, History, grouped
from .members import member_lost
from .responses import slow_response, throttled, unanswered
from .retries_ended import retries_ended
from .transactions import transactions

FINDERS: Sequence[Callable[[History], Iterable[Found]]] = (
    no_requests, connections_refused, authorization_failed, unknown_topic, rule_never_fired, scenario_steps, elections,
    not_retriable, transactions, nothing_read, nothing_produced, without_offsets, member_lost, rebalance_loop,
    commit_went_back, acquisition_timeouts, retries_ended, unanswered, throttled, slow_response, broker_states,
    unclosed_client, rule_hits, leaders_moved, lost_events,
)  # fmt: skip
_SEVERITIES = ("error", "warning", "info")
# Left out if another finding shows all their events.
_CONTEXT = frozenset(
    {*("rule-fired", "broker-down", "leader-moved"), *("retries-ended", "retries-unfinished", "unanswered-request")}
)
_NO_CAUSES = frozenset({"unclosed-client", "lost-events"})


def ranked(histories: Sequence[History], failure: str = "") -> list[tuple[int, Found]]:
    """Return all findings, each with the number of its cluster; `failure` is the text of the failed assertion."""
    found = [
        (place, number, each)
        for number, history in enumerate(histories)
        for place, find in enumerate(FINDERS)
        for each in _merged(history, find(history))
    ]
    found.sort(
        key=lambda one: (
            _severity(one[2], failure),
            histories[one[1]].hits.keys().isdisjoint(one[2].names),
            one[0],
            one[2].at_ns,
        )
    )
    return _emphasized(_without_repeats([(number, each) for _, number, each in found]), failure)


def _without_repeats(found: list[tuple[int, Found]]) -> list[tuple[int, Found]]:
    kept: list[tuple[int, Found]] = []
    for number, each in found:
        others = [other for place, other in kept if place == number]
        if each.id not in _CONTEXT or not any(_covers(other, each) for other in others):
            kept.append((number, each))
    return kept


def _covers(other: Found, context: Found) -> bool:
    if context.id == "rule-fired":
        return other.severity != "info" and context.names[0] in other.names
    return set(other.seqs).issuperset(context.seqs)


def _emphasized(found: list[tuple[int, Found]], failure: str) -> list[tuple[int, Found]]:
    if failure and found and found[0][1].severity == "warning" and found[0][1].id not in _NO_CAUSES:
        found[0] = found[0][0], found[0][1]._replace(severity="error")
    return found


def _merged(history: History, found: Iterable[Found]) -> Iterator[Found]:
    """Yield one finding for those of the same title, such as of each member that a client was."""
    for first, *others in grouped(found, lambda one: (one.severity, one.title)).values():
        if not others:
            yield first
            continue
        times = "once more" if len(others) == 1 else f"{len(others)} times more"
        text = f"{first.text}\nThe same happened {times}, the last time at {history.when(others[-1].at_ns)}."
        yield first._replace(text=text, seqs=[seq for one in (first, *others) for seq in one.seqs])


def _severity(found: Found, failure: str) -> int:
    return _SEVERITIES.index(found.severity) - _is_named(found, failure)


def _is_named(found: Found, failure: str) -> bool:
    names = "|".join(re.escape(name) for name in found.names if name)
    return bool(names) and re.search(rf"(?<![\w-])(?:{names})(?![\w-])", failure) is not None

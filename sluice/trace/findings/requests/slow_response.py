"""Responses that took long: by a fault rule, by missing replicas, or by other members of a group.

Silent for waits that the client requested (a Fetch up to `max_wait_ms`), and for throttles, which have a finding.
"""

from collections.abc import Iterator

from sluice.journal_events import Request
from sluice.trace.described import counted
from sluice.trace.findings.groups.absent_members import absent_members
from sluice.trace.findings.history import (
    NS_PER_MS,
    NS_PER_S,
    REBALANCE_NS,
    Found,
    History,
    client_of,
    duration,
    grouped,
    listed,
    number_value,
    seqs,
    topics_of,
)

_SLOW_NS = NS_PER_S
_REBALANCES = frozenset({"JoinGroup", "SyncGroup"})
_REASONS = {
    "Produce": "With acks=all, the response waits for the in-sync replicas.",
    "JoinGroup": "The response waits until all members have joined, at most for their rebalance timeout.",
    "SyncGroup": "The response waits for the assignment of the group's leader.",
}


def find(history: History) -> Iterator[Found]:
    slow = [each for each in history.requests if _excess_ns(each) >= _limit_ns(each)]
    for (client, api, rule_id), requests in grouped(slow, lambda one: (client_of(one), one.api, one.rule_id)).items():
        longest = max(requests, key=_excess_ns)
        took = duration(longest.at_ns - longest.received_ns)
        by_rule = f", by fault rule {rule_id}" if rule_id else ""
        title = f"{counted(len(requests), f'{api} request')} of client {client} took up to {took}{by_rule}"
        text = f"The slowest was received at {history.when(longest.received_ns)}."
        if not rule_id and api in _REASONS:
            text += f" {_REASONS[api]}"
        absent = absent_members(history, longest) if api == "JoinGroup" else []
        if absent:
            text += f" The last was client {listed(absent)}."
        names = [client, *absent, *topics_of(requests), *filter(None, (rule_id, longest.group_id))]
        yield Found("slow-response", "warning", title, text, longest.received_ns, seqs(requests), names)


def _limit_ns(request: Request) -> int:
    return REBALANCE_NS if request.api in _REBALANCES else _SLOW_NS


def _excess_ns(request: Request) -> int:
    """Return how much longer a response took than the client allowed."""
    if request.answered_ns is None:
        return 0
    allowed_ms = request.throttle_time_ms
    if request.api == "Fetch":
        max_wait_ms = number_value(request.sent, "max_wait_ms")
        if max_wait_ms < 0:
            return 0
        allowed_ms += max_wait_ms
    return request.answered_ns - request.received_ns - allowed_ms * NS_PER_MS

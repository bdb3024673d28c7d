"""Requests without a response: no handler answered, or the connection ended first.

Silent for waits that the end of a connection cuts short: a Fetch up to its `max_wait_ms`, and JoinGroup and SyncGroup
in a rebalance that just began.
"""

from collections.abc import Iterator

from sluice.journal_events import BrokerState, Request
from sluice.trace.described import counted
from sluice.trace.findings.groups.absent_members import absent_members
from sluice.trace.findings.history import (
    NS_PER_MS,
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
from sluice.trace.model import Severity

_REBALANCES = frozenset({"JoinGroup", "SyncGroup"})
_DOWN = frozenset({"stopped", "isolated"})
_SLACK_NS = 100 * NS_PER_MS
_ROUND_NS = 250 * NS_PER_MS  # timeouts in configurations are multiples of it


def find(history: History) -> Iterator[Found]:
    lost = [each for each in history.requests if each.answered_ns is None and not _is_expected(history, each)]
    for (client, api, rule_id), requests in grouped(lost, _kind).items():
        yield _finding(history, client, api, rule_id, requests)


def _kind(request: Request) -> tuple[str, str, str]:
    return client_of(request), request.api, request.rule_id


def _is_expected(history: History, request: Request) -> bool:
    if request.rule_id:
        return False
    waited_ns = request.at_ns - request.received_ns
    if request.api == "Fetch":
        max_wait_ms = number_value(request.sent, "max_wait_ms")
        return max_wait_ms < 0 or waited_ns <= max_wait_ms * NS_PER_MS + _SLACK_NS
    closed = history.closed.get(request.connection)
    return closed is not None and closed.by_client and request.api in _REBALANCES and waited_ns < REBALANCE_NS


def _finding(history: History, client: str, api: str, rule_id: str, requests: list[Request]) -> Found:
    first = requests[0]
    waited = [each.at_ns - each.received_ns for each in requests]
    lines = [_ending(history, first)]
    if len(requests) > 1:
        shown = listed(history.when(each.received_ns) for each in requests)
        lines.append(f"Such requests were received at {shown}; they waited for {duration(max(waited))} at most.")
    if rule_id:
        rule = history.rule_texts.get(rule_id)
        lines.append(f"Fault rule {rule_id} hit {'it' if len(requests) == 1 else 'them'}{f': {rule}' if rule else ''}.")
    elif api == "Produce" and first.sent.get("acks") == -1:
        lines.append(f"With acks=all, the response waits for the in-sync replicas{_down(history, first)}.")
    absent = absent_members(history, requests[-1]) if api == "JoinGroup" else []
    if absent:
        lines.append(f"The group waits for a member that does not join: client {listed(absent)}.")
    by_rule = f", by fault rule {rule_id}" if rule_id else ""
    is_late = all(history.is_after_failure(each.at_ns) for each in requests)
    got = "had no response when the test failed" if is_late else "got no response"
    title = f"{counted(len(requests), f'{api} request')} of client {client} {got}{by_rule}"
    names = [client, *absent, *topics_of(requests), *filter(None, (rule_id, first.group_id, first.transactional_id))]
    severity: Severity = "warning" if _recovered(history, requests) else "error"
    return Found("unanswered-request", severity, title, "\n".join(lines), first.received_ns, seqs(requests), names)


def _down(history: History, request: Request) -> str:
    """Return the brokers that were stopped or isolated when a request was received."""
    states = {each.broker: each.state for each in history.of(BrokerState) if each.at_ns <= request.received_ns}
    down = [f"broker {node_id} is {state}" for node_id, state in states.items() if state in _DOWN]
    return f": {listed(down)}" if down else ""


def _ending(history: History, request: Request) -> str:
    waited_ns = request.at_ns - request.received_ns
    closed = history.closed.get(request.connection)
    when = history.when(request.at_ns)
    if history.failed_ns is not None and request.at_ns > history.failed_ns:
        return _when_failed(history.when(history.failed_ns), request, history.failed_ns - request.received_ns)
    if closed is None:
        return f"The connection is still open at the end of the trace, {duration(waited_ns)} after the request."
    if not closed.by_client:
        reason = f": {closed.reason}" if closed.reason else ""
        return f"The broker closed the connection at {when}, {duration(waited_ns)} after the request{reason}."
    text = f"The client closed the connection at {when}, {duration(waited_ns)} after the request"
    timeout_ms = round(waited_ns / _ROUND_NS) * _ROUND_NS // NS_PER_MS
    if timeout_ms and abs(waited_ns - timeout_ms * NS_PER_MS) < _SLACK_NS:
        text += f": probably request.timeout.ms={timeout_ms} (socket.timeout.ms in librdkafka)"
    return f"{text}."


def _when_failed(when: str, request: Request, waited_ns: int) -> str:
    """Return how long a request had waited; what follows the failure is no evidence of the client's timeout."""
    text = f"The test failed at {when}, {duration(waited_ns)} after the request."
    if request.api == "Produce":
        text += f" A delivery timeout of at most {duration(waited_ns)} fits"
        text += " (delivery.timeout.ms, message.timeout.ms in librdkafka)."
    return text


def _recovered(history: History, requests: list[Request]) -> bool:
    """Return whether the client had a successful response to this API after the last of the requests."""
    last = requests[-1]
    later = history.by_api[last.api]
    return any(
        one.received_ns > last.received_ns and one.answered_ns is not None and not one.error_codes
        for one in reversed(later)
        if client_of(one) == client_of(last)
    )

"""Responses that came late or never: throttled, slow and unanswered requests.

Silent for waits that the client requested or the end of a connection cut short: a Fetch up to its `max_wait_ms`,
JoinGroup and SyncGroup in a rebalance that just began. Throttles have their own finding.
"""

from collections.abc import Iterator

from sluice.journal_events import BrokerState, QuotaChange, Request, Throttle
from sluice.trace.described import counted
from sluice.trace.model import Severity

from .groups import absent_members
from .history import (
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

_LONG_MS = 1_000  # in total: as long as the steps of a test
_KEYS = {
    "Produce": "producer_byte_rate",
    "Fetch": "consumer_byte_rate",
    "Request": "request_percentage",
    "ControllerMutation": "controller_mutation_rate",
}


def throttled(history: History) -> Iterator[Found]:
    throttles = history.of(Throttle)
    requests = {(one.connection, one.correlation_id): one.seq for one in history.requests if one.throttle_time_ms}
    for (client, quota), alike in grouped(throttles, lambda one: (client_of(one), one.quota)).items():
        total_ms = sum(each.throttle_time_ms for each in alike)
        longest_ms = max(each.throttle_time_ms for each in alike)
        times = "once" if len(alike) == 1 else f"{len(alike)} times, for up to {duration(longest_ms * 1_000_000)}"
        title = f"Client {client} was throttled for {duration(total_ms * 1_000_000)} by its {quota} quota"
        text = f"Throttled {times}, from {history.when(alike[0].at_ns)}."
        value = _value(history, alike[-1])
        if value:
            text += f" The quota is {value}."
        places = [(one.connection, one.correlation_id) for one in alike]
        shown = [requests[place] for place in places if place in requests] + seqs(alike)
        severity: Severity = "warning" if total_ms >= _LONG_MS else "info"
        yield Found("throttled", severity, title, text, alike[0].at_ns, shown, [client])


def _value(history: History, throttle: Throttle) -> str:
    """Return the quota that was set for the client id or the user, if the journal has it."""
    key = _KEYS.get(throttle.quota, "")
    user = throttle.principal.removeprefix("User:")
    found = ""
    for change in history.of(QuotaChange):
        is_own = f"client-id={throttle.client_id}" in change.entity or f"user={user}" in change.entity
        if (is_own or "<default>" in change.entity) and key in change.quotas and change.at_ns <= throttle.at_ns:
            found = f"{key}={change.quotas[key]:.10g} of {change.entity}"
    return found


_SLOW_NS = NS_PER_S
_REBALANCES = frozenset({"JoinGroup", "SyncGroup"})
_REASONS = {
    "Produce": "With acks=all, the response waits for the in-sync replicas.",
    "JoinGroup": "The response waits until all members have joined, at most for their rebalance timeout.",
    "SyncGroup": "The response waits for the assignment of the group's leader.",
}


def slow_response(history: History) -> Iterator[Found]:
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


_DOWN = frozenset({"stopped", "isolated"})
_SLACK_NS = 100 * NS_PER_MS
_ROUND_NS = 250 * NS_PER_MS  # timeouts in configurations are multiples of it


def unanswered(history: History) -> Iterator[Found]:
    lost = [each for each in history.requests if each.answered_ns is None and not _is_expected(history, each)]
    for (client, api, rule_id), requests in grouped(lost, _by_rule).items():
        yield _unanswered(history, client, api, rule_id, requests)


def _by_rule(request: Request) -> tuple[str, str, str]:
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


def _unanswered(history: History, client: str, api: str, rule_id: str, requests: list[Request]) -> Found:
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

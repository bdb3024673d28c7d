"""Clients that a quota throttled: by which, how often, for how long."""

from collections.abc import Iterator

from sluice.journal_events import QuotaChange, Throttle
from sluice.trace.findings.history import Found, History, client_of, duration, grouped, seqs
from sluice.trace.model import Severity

_LONG_MS = 1_000  # in total: as long as the steps of a test
_KEYS = {
    "Produce": "producer_byte_rate",
    "Fetch": "consumer_byte_rate",
    "Request": "request_percentage",
    "ControllerMutation": "controller_mutation_rate",
}


def find(history: History) -> Iterator[Found]:
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

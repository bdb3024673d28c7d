"""Requests that a client sent again, and gave up: after how long, and which setting fits.

The client gave up a chain of attempts if the trace continues for longer than its waits between attempts. Otherwise it
was closed meanwhile, or was still retrying. Errors that are not retriable have another finding, and so have heartbeats.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sluice.journal_events import Request
from sluice.protocol.errors import ErrorCode, name_of
from sluice.trace.described import counted, has_failed

from .history import NS_PER_MS, NS_PER_S, Found, History, client_of, duration, grouped, listed, seqs, topics_of

_LEAST = 3  # attempts of an API other than Produce: a client looks things up twice in normal operation
_PERIODIC = frozenset({"Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"})
_UNKNOWN_WAIT_NS = 2 * NS_PER_S  # twice the highest backoff of Kafka's clients
_WAITS = 3  # the trace has to continue for so many times the longest wait
_ROUND_MS = (60_000, 30_000, 10_000, 5_000, 1_000)  # timeouts in configurations are multiples of these
_AT_ONCE_NS = 250 * NS_PER_MS  # a test fails within it after the error of a response
_DELIVERY_TIMEOUT = "delivery.timeout.ms, message.timeout.ms in librdkafka"
_SETTINGS = {
    "Produce": "delivery.timeout.ms={} (message.timeout.ms in librdkafka)",
    "Metadata": "max.block.ms={} of a producer, or default.api.timeout.ms={}",
    "InitProducerId": "max.block.ms={}",
}
_OTHER_SETTING = "default.api.timeout.ms={}"


class _Chain(NamedTuple):
    attempts: list[Request]
    ending: str  # gave up, was closed, is retrying
    ended_ns: int
    longest_wait_ns: int

    @property
    def elapsed_ns(self) -> int:
        return self.ended_ns - self.attempts[0].received_ns


def retries_ended(history: History) -> Iterator[Found]:
    chains = [_chain(history, attempts) for attempts in history.chains if _counts(attempts)]
    for (client, api, ending), alike in grouped(chains, _kind).items():
        yield _finding(history, client, api, ending, alike)


def _kind(chain: _Chain) -> tuple[str, str, str]:
    first = chain.attempts[0]
    return client_of(first), first.api, chain.ending


def _counts(attempts: list[Request]) -> bool:
    last = attempts[-1]
    if last.api in _PERIODIC or not has_failed(last) or not all(map(is_retriable, last.error_codes)):
        return False
    if len(attempts) == 1:
        return last.api == "Produce" and last.answered_ns is not None
    return last.api == "Produce" or len(attempts) >= _LEAST


def _chain(history: History, attempts: list[Request]) -> _Chain:
    ends = [each.written_ns or each.at_ns for each in attempts]
    waits = [after.received_ns - end for end, after in zip(ends, attempts[1:], strict=False)]
    longest_ns = max(waits, default=_UNKNOWN_WAIT_NS)
    due_ns = ends[-1] + _WAITS * max(longest_ns, 100 * NS_PER_MS)
    closed = history.closed.get(attempts[-1].connection)
    is_last = history.last_seen_ns[client_of(attempts[-1])] <= due_ns
    if closed is not None and closed.by_client and closed.at_ns <= due_ns and is_last:
        return _Chain(attempts, "was closed", ends[-1], longest_ns)
    ending = "gave up" if due_ns <= history.end_ns else "is retrying"
    return _Chain(attempts, ending, ends[-1], longest_ns)


def _finding(history: History, client: str, api: str, ending: str, alike: list[_Chain]) -> Found:
    chain = max(alike, key=lambda one: len(one.attempts))
    attempts = chain.attempts
    first, last = attempts[0], attempts[-1]
    subject = f"{api} {first.attempt_key or first.group_id or first.transactional_id}".strip()
    count = counted(len(attempts), "attempt")
    titles = {
        "gave up": f"Client {client} gave up {subject} after {count}",
        "was closed": f"Client {client} was closed while it retried {subject}",
        "is retrying": f"{subject} of client {client} never succeeded: {count}",
    }
    title = titles[ending] if len(attempts) > 1 else f"{subject} of client {client} failed at its only attempt"
    span = f"{count} in {duration(chain.elapsed_ns)}, from {history.when(first.received_ns)}"
    lines = [f"{span}. Outcomes: {_outcomes(attempts)}."]
    rules = [*dict.fromkeys(each.rule_id for each in attempts if each.rule_id)]
    if rules:
        lines.append(f"Hit by fault rule {listed(rules)}.")
    lines.append(_setting(history, chain))
    if len(alike) > 1:
        lines.append(f"The same happened to {counted(len(alike) - 1, 'other request')} of this client.")
    names = [client, *topics_of(attempts), *rules, *filter(None, (first.group_id, first.transactional_id))]
    shown = [seq for one in alike for seq in seqs(one.attempts)]
    kind = "retries-ended" if ending == "gave up" else "retries-unfinished"
    return Found(kind, "error", title, "\n".join(lines), last.received_ns, shown, names)


def _outcomes(attempts: list[Request]) -> str:
    names = [", ".join(map(name_of, each.error_codes)) or "no response" for each in attempts]
    return listed(f"{len(of_name)} x {name}" for name, of_name in grouped(names, str).items())


def _setting(history: History, chain: _Chain) -> str:
    """Name the settings that fit the time and the number of attempts, the most probable one first."""
    first, last = chain.attempts[0], chain.attempts[-1]
    retries = f"retries={len(chain.attempts) - 1}"
    if history.is_after_failure(last.received_ns):
        return "The client was still retrying when the test failed."
    fits = "This fits" if chain.ending == "gave up" else "If the client gave up, this fits"
    failed_ns = history.failed_ns
    is_reported = last.answered_ns is not None and failed_ns is not None and failed_ns - chain.ended_ns < _AT_ONCE_NS
    if len(chain.attempts) == 1 or is_reported:
        return f"{fits} {retries}."
    if failed_ns is not None and first.api == "Produce":
        most = duration(failed_ns - first.received_ns)
        return f"{fits} a delivery timeout of at most {most} ({_DELIVERY_TIMEOUT}), or {retries}."
    timeout_ms = _round_between(chain.elapsed_ns, chain.elapsed_ns + chain.longest_wait_ns + 100 * NS_PER_MS)
    if not timeout_ms:
        return f"{fits} {retries}."
    return f"{fits} {_SETTINGS.get(first.api, _OTHER_SETTING).format(timeout_ms, timeout_ms)}, or {retries}."


def _round_between(least_ns: int, most_ns: int) -> int:
    """Return the roundest number of milliseconds between two times; 0 if there is none."""
    for unit_ms in _ROUND_MS:
        unit_ns = unit_ms * NS_PER_MS
        value_ns = -(-least_ns // unit_ns) * unit_ns
        if least_ns <= value_ns <= most_ns:
            return value_ns // NS_PER_MS
    return 0


def is_retriable(code: int) -> bool:
    """Return whether Kafka's clients retry after an error; unknown codes are not retriable."""
    return code in ErrorCode._value2member_map_ and ErrorCode(code).retriable

"""Requests in words: a short text, the outcome, and the fields that a detail view lists."""

from collections.abc import Iterator

import msgspec

from sluice import journal_events
from sluice.broker.faults.rule import Rule, parse_rule
from sluice.errors import FaultError
from sluice.protocol.errors import ErrorCode, name_of

from .model import Outcome

OK = Outcome("ok", "ok")
THROTTLED = Outcome("throttled", "throttled")
NO_RESPONSE = Outcome("no response", "lost")
# Codes that are steps of a protocol rather than failures.
_EXPECTED_CODES = frozenset(
    {
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    }
)
_SHOWN = 2  # partitions in the text of a request


def text_of(request: journal_events.Request) -> str:
    """Return API, subject and version, such as `Produce orders-0 (v9)`."""
    subject = request.group_id or request.transactional_id or _partitions_text(request)
    return f"{request.api} {subject} (v{request.version})" if subject else f"{request.api} (v{request.version})"


def outcome_of(request: journal_events.Request) -> Outcome:
    """Return the outcome; a fault rule precedes the error that it caused."""
    if request.rule_id:
        return Outcome(f"fault rule {request.rule_id}", "fault")
    if request.answered_ns is None:
        return NO_RESPONSE
    if request.error_codes:
        is_expected = _EXPECTED_CODES.issuperset(request.error_codes)
        return Outcome(", ".join(map(name_of, request.error_codes)), "neutral" if is_expected else "error")
    return THROTTLED if request.throttle_time_ms else OK


def has_failed(request: journal_events.Request) -> bool:
    return bool(request.error_codes) or request.answered_ns is None


def partition_name(partition: journal_events.TopicPartition) -> str:
    return (
        partition.topic if partition.partition == journal_events.NO_ID else f"{partition.topic}-{partition.partition}"
    )


def fields_text(fields: dict[str, journal_events.Value]) -> str:
    """Return `acks=-1, timeout_ms=30000`."""
    return ", ".join(f"{name}={_value_text(value)}" for name, value in fields.items())


def rule_text(rule: Rule) -> str:
    """Return the action and the conditions, such as `error code=REQUEST_TIMED_OUT: api=Produce, times=3`."""
    fields = msgspec.to_builtins(rule)
    fields.pop("id", None)
    action = fields.pop("action")
    if isinstance(action, dict):
        action = " ".join([str(action.pop("kind")), *(f"{name}={value}" for name, value in action.items())])
    conditions = ", ".join(f"{name}={value}" for name, value in fields.items())
    return f"{action}: {conditions}" if conditions else str(action)


def described_rule(text: str) -> tuple[str, int | None]:
    """Return the text of a rule, and the number of hits that ends it."""
    try:
        rule = parse_rule(msgspec.json.decode(text), "rule")
    except (FaultError, msgspec.DecodeError):  # of another version of sluice
        return text, None
    return rule_text(rule), len(rule.on) if rule.on else rule.times


def leader_text(event: journal_events.LeaderChange) -> str:
    isr = ", ".join(map(str, event.isr))
    who = "none" if event.broker == journal_events.NO_ID else f"broker {event.broker}"
    return f"{who}, epoch {event.leader_epoch}, ISR {isr or 'empty'}"


def group_text(event: journal_events.GroupState) -> str:
    return f"{event.after}, generation {event.generation}, {counted(event.members, 'member')}"


def transaction_text(event: journal_events.TransactionState) -> str:
    return f"{event.after}, producer {event.producer_id} epoch {event.producer_epoch}"


def quotas_text(event: journal_events.QuotaChange) -> str:
    return ", ".join(f"{name}={value:.10g}" for name, value in event.quotas.items())


def counted(number: int, noun: str) -> str:
    """Return `1 member`, `2 members`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def detail_of(request: journal_events.Request) -> Iterator[tuple[str, str]]:
    """Yield name and value of fields, without those that the columns of bars have."""
    for code in request.error_codes:
        yield "error", f"{name_of(code)} ({code})"
    if request.rule_id:
        yield "fault rule", request.rule_id
    for partition in request.partitions:
        yield partition_name(partition), _partition_text(partition)
    if request.partitions_left_off:
        yield "further partitions", str(request.partitions_left_off)
    if request.group_id:
        yield "group", request.group_id
    if request.transactional_id:
        yield "transactional id", request.transactional_id
    if request.sent:
        yield "sent", fields_text(request.sent)
    if request.returned:
        yield "returned", fields_text(request.returned)


def _partitions_text(request: journal_events.Request) -> str:
    names = [partition_name(each) for each in request.partitions[:_SHOWN]]
    more = len(request.partitions) + request.partitions_left_off - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _partition_text(partition: journal_events.TopicPartition) -> str:
    parts = []
    if partition.offset != journal_events.NO_ID:
        parts.append(f"offset {partition.offset}")
    if partition.producer_id != journal_events.NO_ID:
        producer = f"producer {partition.producer_id} epoch {partition.producer_epoch}"
        parts.append(f"{producer} sequence {partition.base_sequence}")
    batch, fetched = partition.batch, partition.fetched
    if batch is not None:
        records = "" if batch.records == journal_events.NO_ID else f"{counted(batch.records, 'record')}, "
        compression = f", {batch.compression}" if batch.compression not in ("", "none") else ""
        transactional = ", transactional" if batch.is_transactional else ""
        parts.append(f"{records}{batch.bytes} bytes{compression}{transactional}")
    if fetched is not None:
        parts.append(f"{fetched.bytes} bytes, high watermark {fetched.high_watermark}")
    return ", ".join(parts)


def _value_text(value: journal_events.Value) -> str:
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)

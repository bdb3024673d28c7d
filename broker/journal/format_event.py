"""Events as lines of text: time, client, what happened."""

from datetime import UTC, datetime

from sluice.journal_events import (
    AcquisitionTimeout,
    AnyEvent,
    BrokerState,
    ClientEvent,
    ConnectionClosed,
    ConnectionOpened,
    ConnectionRefused,
    Fault,
    Gap,
    GroupState,
    LeaderChange,
    QuotaChange,
    Request,
    RuleChange,
    ScenarioStep,
    ShadowThrottle,
    Throttle,
    TransactionState,
)
from sluice.protocol.errors import name_of
from sluice.text.error_text import printable


def format_event(event: AnyEvent) -> str:
    broker = (
        ""
        if isinstance(event, Gap | LeaderChange | QuotaChange | RuleChange | ScenarioStep)
        else f"broker {event.broker} "
    )
    client = f"#{event.connection} {event.client_id or event.peer} " if isinstance(event, ClientEvent) else ""
    return printable(f"{_time(event.at_ns)} {broker}{client}{_what(event)}")


def what(event: AnyEvent) -> str:
    return printable(_what(event))


def _what(event: AnyEvent) -> str:
    match event:
        case Request():
            return _request(event)
        case ConnectionOpened():
            return f"connected from {event.peer} to {event.listener}"
        case ConnectionRefused():
            return f"refused: {event.reason}"
        case ConnectionClosed():
            by = "client" if event.by_client else "broker"
            return f"closed by the {by}" + (f": {event.reason}" if event.reason else "")
        case Throttle():
            return f"throttled for {event.throttle_time_ms} ms by its {event.quota} quota, for {event.api}"
        case ShadowThrottle():
            return f"would be throttled for {event.throttle_time_ms} ms by its {event.quota} quota, for {event.api}"
        case Fault():
            return f"hit by fault rule {event.rule_id}: {event.action}" + (f" on {event.api}" if event.api else "")
        case RuleChange():
            return f"fault rule {event.rule_id} {event.change}" + (f": {event.rule}" if event.rule else "")
        case QuotaChange():
            quotas = ", ".join(f"{name}={value:.10g}" for name, value in event.quotas.items())
            return f"quotas of {event.entity}: {quotas or 'none'}"
        case GroupState():
            return f"group {event.group_id}: {event.before} -> {event.after}, generation {event.generation}"
        case TransactionState():
            return f"transaction {event.transactional_id}: {event.before} -> {event.after}"
        case AcquisitionTimeout():
            records = f"{event.topic}-{event.partition} offsets {event.first_offset} to {event.last_offset}"
            return f"group {event.group_id}: acquisition lock of {event.member_id} timed out, {records}"
        case LeaderChange():
            lost = f", {event.lost_records} records lost" if event.lost_records else ""
            return f"leader of {event.topic}-{event.partition}: {event.before} -> {event.broker}{lost}"
        case BrokerState():
            return f"is {event.state}"
        case ScenarioStep():
            failed = f", failed: {event.problem}" if event.problem else ""
            return f"scenario {event.scenario}: {event.what}{failed}"
        case Gap():
            return f"{event.lost} events were lost before they were read"


def _request(event: Request) -> str:
    parts = [f"{event.api} v{event.version} ({event.correlation_id})"]
    if event.attempt_key or event.group_id or event.transactional_id:
        parts.append(" ".join(filter(None, (event.attempt_key, event.group_id, event.transactional_id))))
    if event.answered_ns is None:
        parts.append("no response")
    else:
        parts.append(f"{(event.answered_ns - event.received_ns) / 1e6:.3f} ms")
    parts += map(name_of, event.error_codes)
    if event.throttle_time_ms:
        parts.append(f"throttle_time_ms={event.throttle_time_ms}")
    if event.rule_id:
        parts.append(f"rule {event.rule_id}")
    return ", ".join(parts)


def _time(ns: int) -> str:
    return datetime.fromtimestamp(ns // 1000 / 1e6, UTC).strftime("%H:%M:%S.%f")

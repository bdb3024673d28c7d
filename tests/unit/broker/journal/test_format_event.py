"""Each kind of event, formatted as one line."""

import pytest

from sluice import journal_events as events
from sluice.broker.journal.format_event import format_event, what

CLIENT = {
    "at_ns": 1_700_000_000_123_456_789,
    "broker": 1,
    "connection": 4,
    "listener": "PLAINTEXT",
    "peer": "127.0.0.1:5",
    "client_id": "shop",
    "software_name": "",
    "software_version": "",
    "principal": "User:ANONYMOUS",
}
REQUEST = {
    "api": "Produce",
    "api_key": 0,
    "version": 9,
    "correlation_id": 7,
    "received_ns": 1_700_000_000_120_000_000,
    "started_ns": 1_700_000_000_120_000_000,
    "written_ns": None,
    "request_bytes": 1,
    "response_bytes": 1,
    "partitions": [events.TopicPartition(topic="t", partition=0)],
    "partitions_left_off": 0,
    "group_id": "",
    "transactional_id": "tx",
    "attempt_key": "t-0",
}
NO_ERRORS = {"error_codes": [], "throttle_time_ms": 0, "rule_id": ""}
CLUSTER: dict[str, int] = {"seq": 1, "at_ns": 1_700_000_000_123_456_789}
EVENTS: dict[str, tuple[events.AnyEvent, str]] = {
    "a fault rule that was added": (
        events.RuleChange(**CLUSTER, broker=-1, rule_id="fault-1", change="added", rule='{"action":"close"}'),
        'fault rule fault-1 added: {"action":"close"}',
    ),
    "a fault rule that has ended": (
        events.RuleChange(**CLUSTER, broker=-1, rule_id="fault-1", change="ended", rule=""),
        "fault rule fault-1 ended",
    ),
    "quotas of a client": (
        events.QuotaChange(**CLUSTER, broker=-1, entity="client-id=shop", quotas={"producer_byte_rate": 10_000.0}),
        "quotas of client-id=shop: producer_byte_rate=10000",
    ),
    "removed quotas": (
        events.QuotaChange(**CLUSTER, broker=-1, entity="user=<default>", quotas={}),
        "quotas of user=<default>: none",
    ),
    "an answered request": (
        events.Request(seq=1, answered_ns=1_700_000_000_123_456_000, **CLIENT, **REQUEST, **NO_ERRORS),  # type: ignore[arg-type]
        "broker 1 #4 shop Produce v9 (7), t-0 tx, 3.456 ms",
    ),
    "a request with every field": (
        events.Request(
            seq=1,
            answered_ns=None,
            error_codes=[3, 999],
            throttle_time_ms=5,
            rule_id="r",
            **CLIENT,  # type: ignore[arg-type]
            **REQUEST,  # type: ignore[arg-type]
        ),
        "broker 1 #4 shop Produce v9 (7), t-0 tx, no response, UNKNOWN_TOPIC_OR_PARTITION, 999,"
        " throttle_time_ms=5, rule r",
    ),
    "an opened connection": (
        events.ConnectionOpened(seq=1, **{**CLIENT, "client_id": ""}),  # type: ignore[arg-type]
        "broker 1 #4 127.0.0.1:5 connected from 127.0.0.1:5 to PLAINTEXT",
    ),
    "a refused connection": (
        events.ConnectionRefused(seq=1, reason="why", throttle_time_ms=0, **CLIENT),  # type: ignore[arg-type]
        "broker 1 #4 shop refused: why",
    ),
    "a connection closed by the client": (
        events.ConnectionClosed(seq=1, by_client=True, reason="", **CLIENT),  # type: ignore[arg-type]
        "broker 1 #4 shop closed by the client",
    ),
    "a connection closed by the broker": (
        events.ConnectionClosed(seq=1, by_client=False, reason="why", **CLIENT),  # type: ignore[arg-type]
        "broker 1 #4 shop closed by the broker: why",
    ),
    "a throttled request": (
        events.Throttle(
            seq=1,
            api="Produce",
            version=9,
            correlation_id=7,
            quota="Request",
            throttle_time_ms=5,
            **CLIENT,  # type: ignore[arg-type]
        ),
        "broker 1 #4 shop throttled for 5 ms by its Request quota, for Produce",
    ),
    "a fault": (
        events.Fault(seq=1, api="Produce", version=9, correlation_id=7, rule_id="r", action="delay", **CLIENT),  # type: ignore[arg-type]
        "broker 1 #4 shop hit by fault rule r: delay on Produce",
    ),
    "a group state": (
        events.GroupState(
            **CLUSTER, broker=1, group_id="g", group_type="classic", before="A", after="B", generation=2, members=1
        ),
        "broker 1 group g: A -> B, generation 2",
    ),
    "a transaction state": (
        events.TransactionState(
            **CLUSTER, broker=1, transactional_id="tx", producer_id=1, producer_epoch=0, before="A", after="B"
        ),
        "broker 1 transaction tx: A -> B",
    ),
    "an acquisition timeout": (
        events.AcquisitionTimeout(
            **CLUSTER, broker=1, group_id="g", member_id="m", topic="t", partition=0, first_offset=3, last_offset=4
        ),
        "broker 1 group g: acquisition lock of m timed out, t-0 offsets 3 to 4",
    ),
    "a leader change": (
        events.LeaderChange(
            **CLUSTER, broker=2, topic="t", partition=0, before=1, leader_epoch=1, isr=[2], lost_records=3
        ),
        "leader of t-0: 1 -> 2, 3 records lost",
    ),
    "a broker state": (events.BrokerState(**CLUSTER, broker=2, state="fenced"), "broker 2 is fenced"),
    "a scenario step": (
        events.ScenarioStep(
            **CLUSTER, broker=2, run="r", scenario="s", step="steps[0].stop", what="broker 2 stops", problem=""
        ),
        "scenario s: broker 2 stops",
    ),
    "a failed scenario step": (
        events.ScenarioStep(**CLUSTER, broker=-1, run="r", scenario="s", step="steps[1].say", what="x", problem="y"),
        "scenario s: x, failed: y",
    ),
    "a gap": (events.Gap(**CLUSTER, broker=-1, lost=3), "3 events were lost before they were read"),
}


@pytest.mark.parametrize(("event", "line"), EVENTS.values(), ids=EVENTS)
def test_event_is_formatted_as_one_line(event: events.AnyEvent, line: str) -> None:
    assert format_event(event) == f"22:13:20.123456 {line}"
    assert line.endswith(what(event))


def test_control_characters_of_a_client_are_escaped() -> None:
    forged = CLIENT | {"client_id": "shop\n\x1b[31m"}
    line = format_event(events.ConnectionClosed(seq=1, by_client=True, reason="", **forged))  # type: ignore[arg-type]
    assert line.endswith("broker 1 #4 shop\\n\\x1b[31m closed by the client")
    refused = events.ConnectionRefused(**CLIENT, seq=1, reason="too many\n", throttle_time_ms=0)  # type: ignore[arg-type]
    assert what(refused) == "refused: too many\\n"

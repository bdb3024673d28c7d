"""Events from Kafka's request log: of a real one, and of lines of each API whose fields are recorded."""

import json
from pathlib import Path

import pytest

from sluice.cli.journal.request_log import RequestLog
from sluice.cli.journal.sources import read_events
from sluice.errors import SluiceError
from sluice.journal_events import FetchedRecords, Request
from sluice.lint.run import fold
from sluice.protocol.apis import API_KEYS

LOG = Path(__file__).parents[4] / "fixtures" / "kafka-4.4.0-request.log"
KEYS = {api.name: key for key, api in API_KEYS.items()}


def line(api: str, request: dict[str, object], response: dict[str, object] | None = None, **fields: object) -> str:
    header = {"requestApiKey": KEYS[api], "requestApiVersion": 9, "correlationId": 1, "clientId": "shop"}
    completed = {
        "requestHeader": header,
        "request": request,
        "response": response or {},
        "connection": "10.0.0.1:9092-10.0.0.2:40001-0-1",
        "principal": "User:a",
        "listener": "PLAINTEXT",
        "totalTimeMs": 5.0,
        "responseQueueTimeMs": 1.0,
        "sendTimeMs": 1.0,
        "clientInformation": {"softwareName": "apache-kafka-java", "softwareVersion": "4.4.0"},
        **fields,
    }
    return f"[2026-01-31 12:00:00,010] DEBUG Completed request:{json.dumps(completed, separators=(',', ':'))} (logger)"


def event(api: str, request: dict[str, object], response: dict[str, object] | None = None) -> Request:
    found = RequestLog().event(line(api, request, response))
    assert found is not None
    return found


def test_a_real_log_has_the_requests_of_clients() -> None:
    events = [each for batch in read_events(str(LOG)) for each in batch]
    assert [each.seq for each in events] == [*range(1, len(events) + 1)]
    requests = [each for each in events if isinstance(each, Request)]
    assert {each.api for each in requests} == {"Metadata", "Produce", "Fetch"}  # not BrokerHeartbeat
    produced = [each for each in requests if each.api == "Produce"]
    assert (produced[0].sent, produced[0].partitions[0].topic) == ({"acks": 1, "timeout_ms": 40_000}, "orders")
    assert max(each.throttle_time_ms for each in produced) == 10_010
    fetches = [each for each in requests if each.api == "Fetch" and each.partitions[0].fetched is not None]
    assert fetches[0].partitions[0].fetched == FetchedRecords(bytes=150_000, high_watermark=8, last_stable_offset=8)


def test_times_are_those_of_the_broker() -> None:
    found = event("Metadata", {"topics": None})
    assert found.received_ns == found.at_ns - 3_000_000
    assert found.written_ns == found.at_ns + 2_000_000
    assert found.peer == "10.0.0.2:40001"


RECORDED = [
    ("Metadata", {"topics": None}, {}, {"all_topics": True}, {}),
    (
        "JoinGroup",
        {"groupId": "g", "sessionTimeoutMs": 45_000, "memberId": "", "protocols": [{"name": "range"}]},
        {"generationId": 3, "memberId": "m", "members": [{"memberId": "m"}]},
        {"session_timeout_ms": 45_000, "member_id": "", "protocols": ["range"]},
        {"generation_id": 3, "member_id": "m"},
    ),
    ("Heartbeat", {"groupId": "g", "memberId": "m", "generationId": 3}, {}, {"member_id": "m", "generation_id": 3}, {}),
    (
        "OffsetCommit",
        {"groupId": "g", "memberId": "m", "generationIdOrMemberEpoch": 3},
        {},
        {"member_id": "m", "generation_id": 3},
        {},
    ),
    ("InitProducerId", {"transactionTimeoutMs": 60_000}, {}, {"transaction_timeout_ms": 60_000}, {}),
    ("EndTxn", {"committed": True}, {}, {"committed": True}, {}),
    ("FindCoordinator", {"keyType": 0, "coordinatorKeys": ["g"]}, {}, {"key_type": 0, "keys": ["g"]}, {}),
]


@pytest.mark.parametrize(("api", "request_", "response", "sent", "returned"), RECORDED)
def test_recorded_fields(
    api: str, request_: dict[str, object], response: dict[str, object], sent: object, returned: object
) -> None:
    found = event(api, request_, response)
    assert (found.sent, found.returned) == (sent, returned)
    assert found.group_id == request_.get("groupId", "")


def test_errors_and_partitions() -> None:
    topics = [{"name": "a", "partitions": [{"partitionIndex": 2, "committedOffset": 7}]}]
    found = event("OffsetCommit", {"groupId": "g", "topics": topics}, {"topics": [{"errorCode": 27}, {"errorCode": 0}]})
    assert found.error_codes == [27]
    assert [(each.topic, each.partition, each.offset) for each in found.partitions] == [("a", 2, 7)]
    assert found.attempt_key == "a-2"


def test_requests_of_brokers_are_left_out() -> None:
    log = RequestLog()
    assert log.event(line("Fetch", {"replicaId": 2, "topics": []})) is None
    assert log.event(line("Fetch", {"replicaState": {"replicaId": 2}, "topics": []})) is None
    assert log.event(line("Metadata", {"topics": None}, isForwarded=True)) is None


OTHER_LINES = [
    ("[2026-01-31 12:00:00,010] DEBUG Completed request:RequestHeader(apiKey=FETCH", "request in the text form of"),
    ("[2026-01-31 12:00:00,010] DEBUG Completed request:{}", "malformed completed request: "),
    ("DEBUG Completed request:{}", "completed request without a timestamp; expected one such as"),
    ("started", "neither a journal event nor a completed request"),
]


@pytest.mark.parametrize(("text", "problem"), OTHER_LINES)
def test_another_line_is_reported_with_its_number(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "request.log"
    path.write_text(f"{line('Metadata', {'topics': None})}\n{text}\n")
    with pytest.raises(SluiceError, match=f"^{path}: line 2: {problem}"):
        list(read_events(str(path)))


def test_rules_judge_a_request_log() -> None:
    clients = {each.key.client_id: each.producing.acks for each in fold(read_events(str(LOG))).clients.values()}
    assert clients["big"] == {1: 4}

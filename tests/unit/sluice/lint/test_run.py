"""The fold of events, from the journal's own types and from lines, and the findings of rules."""

from collections.abc import Callable

import msgspec
import pytest

from sluice.journal_events import Gap, GroupState, Request
from sluice.lint.events import ClientKey
from sluice.lint.run import Fold, lint


def request(seq: int, **fields: object) -> Request:
    make: Callable[..., Request] = Request
    values: dict[str, object] = {
        "seq": seq, "at_ns": seq * 10, "broker": 0, "connection": 1, "listener": "PLAIN", "peer": "127.0.0.1:5000",
        "client_id": "shop", "software_name": "apache-kafka-java", "software_version": "4.4.0", "principal": "User:a",
        "api": "Produce", "api_key": 0, "version": 11, "correlation_id": seq, "received_ns": seq * 10 - 5,
        "started_ns": seq * 10 - 5, "answered_ns": seq * 10, "written_ns": seq * 10, "request_bytes": 100,
        "response_bytes": 50, "partitions": [], "partitions_left_off": 0, "group_id": "", "transactional_id": "",
        "attempt_key": "", "error_codes": [], "throttle_time_ms": 0, "rule_id": "",
    }  # fmt: skip
    return make(**{**values, **fields})


EVENTS = [
    request(1, client_id=""),
    request(2, api="JoinGroup", group_id="g"),
    GroupState(
        seq=3, at_ns=30, broker=0, group_id="g", group_type="classic", before="Empty", after="Stable",
        generation=1, members=1,
    ),
    Gap(seq=9, at_ns=90, broker=0, lost=6),
]  # fmt: skip


def from_events(fold: Fold) -> None:
    fold.take(EVENTS)


def from_lines(fold: Fold) -> None:
    fold.take_lines(b"\n".join(msgspec.json.encode(event) for event in EVENTS))


@pytest.mark.parametrize("take", [from_events, from_lines])
def test_events_reach_the_facts_of_their_client_and_group(take: Callable[[Fold], None]) -> None:
    fold = Fold()
    take(fold)
    shop = ClientKey("shop", "apache-kafka-java", "4.4.0")
    assert [(key.client_id, facts.traffic.apis.total()) for key, facts in fold.clients.items()] == [
        ("", 1),
        ("shop", 1),
    ]
    assert {name: list(facts.clients) for name, facts in fold.groups.items()} == {"g": [shop]}
    assert (fold.events, fold.lost) == (4, 6)


def test_a_client_without_an_id_is_found() -> None:
    (found,) = [each for each in lint(EVENTS).findings if each.rule == "no-client-id"]
    assert found.subject == "(no client id) (apache-kafka-java 4.4.0)"
    assert [(each.text, [example.seq for example in each.examples]) for each in found.evidence] == [
        ("1 requests with no client id", [1])
    ]

"""Missing authorization and failed authentication."""

import pytest

from sluice.journal_events import TopicPartition
from sluice.trace.findings.errors import authorization_failed as find
from tests.support.trace_findings import Make, found


def failed(api: str, code: int, *, group_id: str = "", rule_id: str = "") -> Make:
    partitions = [TopicPartition(topic="orders", partition=0)] if api == "Produce" else []
    return lambda journal: journal.request(
        api, 1, 2, partitions=partitions, group_id=group_id, errors=[code], rule_id=rule_id
    )


CASES = {
    "a topic": (failed("Produce", 29), "authorization-failed", "User:ANONYMOUS is not authorized for Produce orders"),
    "a group": (
        failed("JoinGroup", 30, group_id="g"),
        "authorization-failed",
        "User:ANONYMOUS is not authorized for JoinGroup g",
    ),
    "by a rule": (
        failed("Produce", 29, rule_id="r"),
        "authorization-failed",
        "User:ANONYMOUS is not authorized for Produce orders, by fault rule r",
    ),
    "SASL": (
        failed("SaslAuthenticate", 58),
        "authentication-failed",
        "Client app failed to authenticate: SASL_AUTHENTICATION_FAILED",
    ),
}


@pytest.mark.parametrize(("make", "kind", "title"), CASES.values(), ids=CASES)
def test_failures(make: Make, kind: str, title: str) -> None:
    (one,) = found(find, make)
    assert (one.id, one.title) == (kind, title)


def test_silent_for_other_errors() -> None:
    assert not found(find, failed("Produce", 6))

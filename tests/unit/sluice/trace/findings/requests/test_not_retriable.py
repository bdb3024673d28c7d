"""Errors after which clients do not retry."""

import pytest

from sluice.trace.findings.errors import not_retriable as find
from tests.support.trace_findings import Make, found


def failed(api: str, code: int, rule_id: str = "") -> Make:
    return lambda journal: journal.request(api, 1, 2, errors=[code], rule_id=rule_id)


CASES = {
    "too large": (failed("Produce", 10), ["Produce of client app failed with MESSAGE_TOO_LARGE"]),
    "by a rule": (failed("Produce", 10, "r"), ["Produce of client app failed with MESSAGE_TOO_LARGE, by fault rule r"]),
    "out of range": (failed("Fetch", 1), ["Fetch of client app failed with OFFSET_OUT_OF_RANGE"]),
    "a code of a newer Kafka": (failed("Fetch", 9999), ["Fetch of client app failed with 9999"]),
    "an unsupported version": (failed("Fetch", 35), ["Fetch of client app failed with UNSUPPORTED_VERSION"]),
    "ApiVersions offers lower versions": (failed("ApiVersions", 35), []),
    "retriable": (failed("Produce", 6), []),
    "a step of joining": (failed("JoinGroup", 79), []),
    "authorization has a finding": (failed("Produce", 29), []),
    "members have a finding": (failed("Heartbeat", 25), []),
    "fenced producers have a finding": (failed("EndTxn", 90), []),
}


@pytest.mark.parametrize(("make", "titles"), CASES.values(), ids=CASES)
def test_errors(make: Make, titles: list[str]) -> None:
    assert [one.title for one in found(find, make)] == titles

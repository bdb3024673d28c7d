from collections.abc import Sequence

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.completed_calls import split_calls
from sluice.audit.judge.model.observation import Callback, Role
from sluice.audit.judge.model.verdict import State
from sluice.audit.judge.observer.calls import call_sequences
from tests.support.audit_events import callback, observed
from tests.support.journals import Journal


def failing(api: str, *at_ms: float) -> Journal:
    journal = Journal()
    for each in at_ms:
        journal.request(api, each, each + 1, group_id="g", errors=[14])
    return journal


EVENTS = {
    "an admin's call that was given up": ("DescribeGroups", "call-failed", 150, [[99], [99]]),
    "a commit that was given up": ("OffsetCommit", "call-failed", 150, [[99], [99]]),
    "requests beside the application's calls": ("Heartbeat", "call-failed", 150, [[99, 199, 99]]),
    "another client": ("Heartbeat", "started", 150, [[99], [99]]),
    "requests within a call that was given up": ("Heartbeat", "gave-up", 150, [[99], [99]]),
    "this client, whose first attempt is in the same millisecond": ("Heartbeat", "started", 0.5, [[99, 199, 99]]),
    "an unrelated event": ("DescribeGroups", "received", 150, [[99, 199, 99]]),
    "a call given up in the same moment of virtual time": ("DescribeGroups", "call-failed", 100.999_995, [[99], [99]]),
    "another client in the same moment of virtual time": ("Heartbeat", "started", 300.000_009, [[99], [99]]),
}


@pytest.mark.parametrize(("api", "event", "at_ms", "gaps"), EVENTS.values(), ids=EVENTS)
def test_next_event(api: str, event: str, at_ms: float, gaps: list[list[float]]) -> None:
    assert gaps_of(api, callback("started", -1), callback(event, at_ms)) == gaps


def gaps_of(api: str, *callbacks: Callback) -> list[list[float]]:
    run = observed("admin-error", failing(api, 0, 100, 300, 400).events, callbacks=callbacks)
    found = split_calls(call_sequences(run.events), run)
    return [[round(gap) for gap in sequence.gaps_ms()] for sequence in found]


def test_first_client_has_no_calls_before_it() -> None:
    """A library may connect within its constructor, before its driver can report."""
    assert gaps_of("Heartbeat", callback("started", 50)) == [[99, 199, 99]]


NEW_CALLS = {
    "doubling waits are of one call": ("Metadata", (0, 101, 302, 703), [[100, 200, 400]]),
    "a wait that falls back": ("Metadata", (0, 101, 302, 703, 724, 825), [[100, 200, 400], [100]]),
    "a wait that grows more than twofold": ("Metadata", (0, 101, 902, 1003), [[100], [100]]),
    "short waits differ by chance": ("Metadata", (0, 2, 6, 9), [[1, 3, 2]]),
}


@pytest.mark.parametrize(("api", "at_ms", "gaps"), NEW_CALLS.values(), ids=NEW_CALLS)
def test_new_call_of_a_command_begins_after(api: str, at_ms: Sequence[float], gaps: list[list[float]]) -> None:
    run = observed("metadata-unknown-topic", failing(api, *at_ms).events, is_command=True)
    found = split_calls(call_sequences(run.events), run)
    assert [[round(gap) for gap in sequence.gaps_ms()] for sequence in found] == gaps


def test_waits_of_the_application_are_not_the_clients() -> None:
    at_ms = range(0, 600, 51)
    calls: list[Callback] = [callback("call-failed", each + 2) for each in at_ms]
    run = observed("admin-error", failing("DescribeGroups", *at_ms).events, role=Role.ADMIN, callbacks=calls)
    verdict = judge("KIP-580/15", [run])
    assert verdict.state is State.NOT_OBSERVABLE
    assert verdict.why == "it does not retry: 12 of 12 failed operations were given up"


def test_client_that_gives_up_after_two_retries_passes_with_those_retries() -> None:
    journal, calls = Journal(), []
    for call_ms in range(0, 4000, 1000):
        for each in (0, 101, 302):
            journal.request("OffsetCommit", call_ms + each, call_ms + each + 1, group_id="g", errors=[14])
        calls.append(callback("call-failed", call_ms + 304))
    run = observed("commit-error", journal.events, role=Role.CONSUMER, callbacks=calls)
    assert judge("KIP-580/10", [run]).state is State.PASS

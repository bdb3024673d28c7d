"""Rules about groups: each fires, stays silent on healthy use, and stays silent without evidence."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import pytest

from sluice.journal_events import Value
from sluice.protocol.errors import ErrorCode
from tests.support.journals import Journal
from tests.support.rule_cases import RuleCase, rule_tests, silence_test, texts

STABLE, PREPARING, COMPLETING, EMPTY = "Stable", "PreparingRebalance", "CompletingRebalance", "Empty"


class Members:
    """A group whose members send requests, each on its own connection."""

    def __init__(
        self, *, session_ms: int = 10_000, rebalance_ms: int = 30_000, protocols: Sequence[str] = ("range",)
    ) -> None:
        self.journal = Journal()
        self.session_ms, self.rebalance_ms, self.protocols = session_ms, rebalance_ms, list(protocols)

    def _add(
        self, api: str, at_ms: float, connection: int, sent: Mapping[str, Value], returned: Mapping[str, Value],
        errors: Iterable[int], *, lasting_ms: float = 1, rule_id: str = "",
    ) -> None:  # fmt: skip
        self.journal.request(
            api, at_ms, at_ms + lasting_ms, connection=connection, group_id="g", sent=sent, returned=returned,
            errors=errors, rule_id=rule_id,
        )  # fmt: skip

    def join(
        self, at_ms: float, member: str, connection: int, *, instance: str = "", first: bool = True,
        errors: Iterable[int] = (), lasting_ms: float = 1, rule_id: str = "",
    ) -> None:  # fmt: skip
        sent: dict[str, Value] = {
            "member_id": "" if first else member,
            "session_timeout_ms": self.session_ms,
            "rebalance_timeout_ms": self.rebalance_ms,
            "protocol_type": "consumer",
            "protocols": self.protocols,
            **({"group_instance_id": instance} if instance else {}),
        }
        returned: dict[str, Value] = {"generation_id": 1, "member_id": member, "protocol_name": self.protocols[0]}
        self._add("JoinGroup", at_ms, connection, sent, returned, errors, lasting_ms=lasting_ms, rule_id=rule_id)

    def sync(
        self, at_ms: float, member: str, connection: int, partitions: Sequence[str], *, generation: int = 1
    ) -> None:
        sent: dict[str, Value] = {"member_id": member, "generation_id": generation}
        self._add("SyncGroup", at_ms, connection, sent, {"assignment": list(partitions)}, ())

    def heartbeat(
        self, at_ms: float, member: str, connection: int, *, errors: Iterable[int] = (), instance: str = "",
        rule_id: str = "",
    ) -> None:  # fmt: skip
        sent: dict[str, Value] = {"member_id": member, "generation_id": 1}
        if instance:
            sent["group_instance_id"] = instance
        self._add("Heartbeat", at_ms, connection, sent, {}, errors, rule_id=rule_id)

    def heartbeats(self, from_ms: int, until_ms: int, member: str, connection: int, *, step_ms: int = 3000) -> None:
        for at_ms in range(from_ms, until_ms, step_ms):
            self.heartbeat(at_ms, member, connection)

    def leave(self, at_ms: float, member: str, connection: int, *, reason: str = "") -> None:
        sent: dict[str, Value] = {"members": [member], **({"reason": reason} if reason else {})}
        self._add("LeaveGroup", at_ms, connection, sent, {}, ())

    def state(self, at_ms: float, before: str, after: str, *, members: int = 1) -> None:
        self.journal.group_state(at_ms, before, after, members=members)


def beats(step_ms: int, *, session_ms: int, count: int = 10) -> Journal:
    """Return the journal of a member with this heartbeat interval."""
    group = Members(session_ms=session_ms)
    group.join(0, "m", 5)
    group.heartbeats(step_ms, (count + 1) * step_ms, "m", 5, step_ms=step_ms)
    return group.journal


def joins(
    *, session_ms: int = 10_000, errors: Iterable[int] = (), rule_id: str = "", protocol: str = "range"
) -> Journal:
    """Return the journal of a member that joins once."""
    group = Members(session_ms=session_ms, protocols=[protocol])
    group.join(0, "m", 5, errors=errors, rule_id=rule_id)
    return group.journal


def silent_then_removed(silent_ms: int, *, code: int = ErrorCode.UNKNOWN_MEMBER_ID, rule_id: str = "") -> Journal:
    """Return the journal of a member that is removed after it sent no heartbeat for this time."""
    group = Members()
    group.join(0, "m", 5)
    group.heartbeats(3000, 9001, "m", 5)
    group.state(9000 + 10_000, STABLE, PREPARING, members=1)
    group.heartbeat(9001 + silent_ms, "m", 5, errors=[code], rule_id=rule_id)
    return group.journal


def leaves_and_joins(
    stay_ms: int, *, rebalance_ms: int = 30_000, connection: int = 5, reason: str = "", times: int = 1
) -> Journal:
    """Return the journal of a member that leaves after some time, and joins again."""
    group = Members(rebalance_ms=rebalance_ms)
    group.join(0, "m0", 5)
    at_ms = 0
    for number in range(1, times + 1):
        group.heartbeats(at_ms + 3000, at_ms + stay_ms, f"m{number - 1}", 5)
        at_ms += stay_ms
        group.state(at_ms, STABLE, EMPTY, members=0)
        group.leave(at_ms, f"m{number - 1}", 5, reason=reason)
        at_ms += 1000
        group.state(at_ms, EMPTY, PREPARING)
        group.join(at_ms, f"m{number}", connection)
        group.state(at_ms + 1, PREPARING, COMPLETING)
        group.state(at_ms + 2, COMPLETING, STABLE)
    return group.journal


def rebalances_after(late_ms: int, *, told: bool = True, rebalance_ms: int = 30_000) -> Journal:
    """Return the journal of a member that joins some time after a heartbeat requested it."""
    group = Members(rebalance_ms=rebalance_ms)
    group.join(0, "m", 5)
    group.state(2000, STABLE, PREPARING, members=2)
    group.heartbeat(3000, "m", 5, errors=[ErrorCode.REBALANCE_IN_PROGRESS] if told else [])
    group.heartbeats(6000, 3000 + late_ms, "m", 5)
    group.join(3001 + late_ms, "m", 5, first=False)
    return group.journal


def is_removed_in_a_rebalance() -> Journal:
    """Return the journal of a member that sends heartbeats, but does not join in time."""
    group = Members(rebalance_ms=10_000)
    group.join(0, "m", 5)
    group.heartbeat(3000, "m", 5, errors=[ErrorCode.REBALANCE_IN_PROGRESS])
    group.heartbeats(6000, 12_001, "m", 5)
    group.state(13_000, PREPARING, COMPLETING)
    group.heartbeat(15_000, "m", 5, errors=[ErrorCode.UNKNOWN_MEMBER_ID])
    return group.journal


def members_come_and_go(count: int) -> Journal:
    """Return the journal of a rolling restart: each member leaves, and another process joins."""
    group = Members()
    for number in range(count):
        at_ms = number * 5000
        group.state(at_ms, STABLE, PREPARING)
        group.leave(at_ms, f"m{number - 1}", 10 + number)
        group.state(at_ms + 2000, STABLE, PREPARING)
        group.join(at_ms + 2000, f"m{number}", 11 + number)
    return group.journal


def instance_is_fenced(*, fenced: bool = True, rule_id: str = "", is_sent: bool = True) -> Journal:
    """Return the journal of two members with one instance id, which the first one's heartbeat has or not."""
    group = Members()
    group.join(0, "m1", 5, instance="pod-1")
    group.join(1000, "m2", 6, instance="pod-1")
    if fenced:
        codes = [ErrorCode.FENCED_INSTANCE_ID if is_sent else ErrorCode.UNKNOWN_MEMBER_ID]
        group.heartbeat(3000, "m1", 5, errors=codes, instance="pod-1" if is_sent else "", rule_id=rule_id)
    return group.journal


def static_member_returns(away_ms: int, *, others: bool = True, connection: int = 6) -> Journal:
    group = Members()
    if others:
        group.join(0, "other", 4)
        group.heartbeats(3000, away_ms, "other", 4)
    group.join(0, "m1", 5, instance="pod-1")
    group.join(away_ms, "m2", connection, instance="pod-1")
    return group.journal


def rebalancing_group(rebalances: int, *, members: int = 3, protocol: str = "range", kind: str = "classic") -> Journal:
    group = Members(protocols=[protocol])
    group.join(0, "m1", 5)
    for number in range(rebalances):
        group.journal.group_state(1000 + number * 60_000, STABLE, PREPARING, members=members, group_type=kind)
    return group.journal


def assignment(
    *partitions: Sequence[str], lasting_ms: int = 10_000, protocol: str = "range", leaves: bool = False
) -> Journal:
    """Return the journal of a group with one member per list of partitions."""
    group = Members(protocols=[protocol])
    for number, assigned in enumerate(partitions):
        group.join(0, f"m{number}", 10 + number)
        group.sync(5, f"m{number}", 10 + number, assigned)
        group.heartbeat(lasting_ms, f"m{number}", 10 + number)
    if leaves:
        for number in range(len(partitions)):
            group.state(lasting_ms + 10, STABLE, PREPARING)
            group.leave(lasting_ms + 11, f"m{number}", 10 + number)
    return group.journal


def stops(count: int, *, leaving: int = 0, until_ms: int = 11_000, instance: str = "", apart: int = 1) -> Journal:
    """Return the journal of members that send nothing after they have joined, and of some that leave."""
    group = Members()
    for number in range(count):
        group.join(number, f"m{number}", 10 + apart * number, instance=instance and f"{instance}-{number}")
    for number in range(leaving):
        group.join(number, f"l{number}", 100 + number)
        group.leave(100 + number, f"l{number}", 100 + number)
    group.state(until_ms, STABLE, EMPTY, members=0)
    return group.journal


CASES = {
    "heartbeat-interval": RuleCase(
        "with a session timeout of 6,000 ms",
        partial(beats, 3000, session_ms=6000),
        partial(beats, 3000, session_ms=10_000),
        partial(beats, 3000, session_ms=6000, count=3),
    ),
    "session-timeout-short": RuleCase(
        "client app has a session timeout of 2,000 ms",
        partial(joins, session_ms=2000),
        partial(joins, session_ms=6000),
        partial(joins, session_ms=2000, errors=[ErrorCode.INVALID_SESSION_TIMEOUT]),
    ),
    "session-timeout-rejected": RuleCase(
        "client app requested 100 ms",
        partial(joins, session_ms=100, errors=[ErrorCode.INVALID_SESSION_TIMEOUT]),
        joins,
        partial(joins, session_ms=100, errors=[ErrorCode.INVALID_SESSION_TIMEOUT], rule_id="fault-1"),
    ),
    "session-expired": RuleCase(
        "sent no heartbeat for 12 s, with a session timeout of 10 s",
        partial(silent_then_removed, 12_000),
        partial(silent_then_removed, 9000, code=ErrorCode.REBALANCE_IN_PROGRESS),
        partial(silent_then_removed, 12_000, rule_id="fault-1"),
    ),
    "poll-too-late": RuleCase(
        "client app left 30 s after it had joined, and joined again 1 s later",
        partial(leaves_and_joins, 30_001),
        partial(leaves_and_joins, 5000),
        partial(leaves_and_joins, 30_001, connection=6),
    ),
    "poll-near-limit": RuleCase(
        "joined 20 s after it was requested to, with a rebalance timeout of 30 s",
        partial(rebalances_after, 20_000),
        partial(rebalances_after, 3000),
        partial(rebalances_after, 20_000, told=False),
    ),
    "rebalance-loop": RuleCase(
        "7 rebalances within 5 minutes",
        partial(leaves_and_joins, 31_000, times=7),
        partial(members_come_and_go, 10),
        partial(leaves_and_joins, 31_000, times=4),
    ),
    "instance-id-twice": RuleCase(
        "Heartbeat of instance pod-1 on connection 5 failed; connection 6 has the id",
        instance_is_fenced,
        partial(instance_is_fenced, fenced=False),
        partial(instance_is_fenced, rule_id="fault-1"),
    ),
    "static-member-expires": RuleCase(
        "instance pod-1 returned after 15 s, with a session timeout of 10 s",
        partial(static_member_returns, 15_000),
        partial(static_member_returns, 8000),
        partial(static_member_returns, 15_000, others=False),
    ),
    "eager-rebalances": RuleCase(
        "5 rebalances of up to 3 members with the assignor range",
        partial(rebalancing_group, 5),
        partial(rebalancing_group, 5, protocol="cooperative-sticky"),
        partial(rebalancing_group, 4),
    ),
    "assignors-differ": RuleCase(
        "client app supports roundrobin; the group uses another one",
        partial(joins, errors=[ErrorCode.INCONSISTENT_GROUP_PROTOCOL], protocol="roundrobin"),
        joins,
        partial(joins, errors=[ErrorCode.INCONSISTENT_GROUP_PROTOCOL], rule_id="fault-1"),
    ),
    "idle-members": RuleCase(
        "1 of 2 members have no partition of 1, such as client app on connection 11",
        partial(assignment, ["t-0"], []),
        partial(assignment, ["t-0"], ["t-1"]),
        partial(assignment, ["t-0"], [], lasting_ms=1000),
    ),
    "uneven-assignment": RuleCase(
        "client app has 3 partitions of 3 topics, client app has 0",
        partial(assignment, ["a-0", "b-0", "c-0"], []),
        partial(assignment, ["a-0", "b-0"], ["a-1", "b-1"]),
        partial(assignment, ["a-0", "b-0", "c-0"], [], lasting_ms=1000),
    ),
    "closed-without-leaving": RuleCase(
        "the session timeout of 2 members passed without a LeaveGroup: client app after 10 s",
        partial(stops, 2),
        partial(stops, 0, leaving=2),
        partial(stops, 2, until_ms=5000),
    ),
}


test_rule, test_all_rules_have_a_case = rule_tests(CASES, "groups", "sessions")


UNSUBSCRIBED = "the consumer unsubscribed from all topics"
SILENT = {
    "exactly a third": ("heartbeat-interval", partial(beats, 3000, session_ms=9000)),
    "a member that was removed earlier": ("session-expired", partial(silent_then_removed, 9000)),
    "a consumer that unsubscribes": ("poll-too-late", partial(leaves_and_joins, 31_000, reason=UNSUBSCRIBED)),
    "a join within a second": ("poll-near-limit", partial(rebalances_after, 600, rebalance_ms=1000)),
    "a member that was stopped": ("static-member-expires", partial(static_member_returns, 400_000)),
    "a member that joins on its connection": (
        "static-member-expires",
        partial(static_member_returns, 15_000, connection=5),
    ),
    "a group of two": ("eager-rebalances", partial(rebalancing_group, 5, members=2)),
    "a consumer group": ("eager-rebalances", partial(rebalancing_group, 5, kind="consumer")),
    "an uneven assignment": ("idle-members", partial(assignment, ["a-0", "b-0", "c-0"], [])),
    "partitions of one topic": ("uneven-assignment", partial(assignment, ["t-0", "t-1"], [])),
    "another assignor": ("uneven-assignment", partial(assignment, ["a-0", "b-0", "c-0"], [], protocol="sticky")),
    "one member that stops": ("closed-without-leaving", partial(stops, 1)),
    "members that one connection has joined as": ("closed-without-leaving", partial(stops, 3, apart=0)),
    "some crashes among members that leave": ("closed-without-leaving", partial(stops, 2, leaving=3)),
    "static members that stop": ("closed-without-leaving", partial(stops, 2, instance="pod")),
}


test_silence = silence_test(SILENT)


POLL_TIMEOUT = "consumer poll timeout has expired."
FURTHER = {
    "the reason of the Java client": (
        "poll-too-late",
        partial(leaves_and_joins, 5000, reason=POLL_TIMEOUT),
        POLL_TIMEOUT,
    ),
    "a client that does not send its instance id in heartbeats": (
        "instance-id-twice",
        partial(instance_is_fenced, is_sent=False),
        "Heartbeat of instance pod-1 on connection 5 failed; connection 6 has the id",
    ),
    "a member removed in a rebalance": (
        "poll-near-limit",
        is_removed_in_a_rebalance,
        "did not join within the rebalance timeout of 10 s",
    ),
    "members that have left since": ("idle-members", partial(assignment, ["t-0"], [], leaves=True), "1 of 2 members"),
}


@pytest.mark.parametrize(("rule", "journal", "says"), FURTHER.values(), ids=FURTHER)
def test_the_rule_fires_on(rule: str, journal: partial[Journal], says: str) -> None:
    (found,) = texts(rule, journal())
    assert says in found


def test_a_member_whose_join_takes_longer_than_its_session_has_not_expired() -> None:
    group = Members()
    for number in range(2):
        group.join(0, f"m{number}", 10 + number)
        group.join(3000, f"m{number}", 10 + number, first=False, lasting_ms=9000)
    group.state(11_000, PREPARING, COMPLETING)
    assert texts("closed-without-leaving", group.journal) == []


def consumer_protocol(*, silent_ms: int, error: int = 0) -> Journal:
    """Return the journal of a member of a consumer group (KIP-848) with a heartbeat interval of 5 s."""
    made = Journal()
    for at_ms, epoch, errors in ((0, 0, []), (5000, 1, []), (5000 + silent_ms, 1, [error] if error else [])):
        sent: dict[str, Value] = {"member_id": "m", "member_epoch": epoch, "rebalance_timeout_ms": 300_000}
        returned: dict[str, Value] = {"member_id": "m", "member_epoch": 1, "heartbeat_interval_ms": 5000}
        made.request(
            "ConsumerGroupHeartbeat", at_ms, at_ms + 1, group_id="g", sent=sent, returned=returned, errors=errors
        )  # fmt: skip
    return made


EXPIRED = {
    "expired": (60_000, ErrorCode.UNKNOWN_MEMBER_ID, 1),
    "fenced for another reason": (5000, ErrorCode.FENCED_MEMBER_EPOCH, 0),
    "late, but not expired": (60_000, 0, 0),
}


@pytest.mark.parametrize(("silent_ms", "error", "count"), EXPIRED.values(), ids=EXPIRED)
def test_members_of_consumer_groups_expire(silent_ms: int, error: int, count: int) -> None:
    assert len(texts("session-expired", consumer_protocol(silent_ms=silent_ms, error=error))) == count


def test_a_session_ends_before_its_timeout_after_the_last_response() -> None:
    assert len(texts("closed-without-leaving", stops(2, until_ms=9_999))) == 1


def test_the_oldest_of_many_members_are_forgotten() -> None:
    group = Members(session_ms=100)
    for number in range(4100):
        group.join(number * 10_000, f"m{number}", 10 + number)
    (found,) = texts("session-timeout-short", group.journal)
    assert found.endswith("members with less than 6 s: 4,096")

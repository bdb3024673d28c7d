"""Fault actions on share groups, in virtual time."""

import pytest

from sluice.broker.faults.actions.share_groups import AcknowledgementError
from sluice.broker.faults.rule import Rule
from sluice.errors import FaultError
from sluice.protocol.errors import ErrorCode
from tests.support import share_consumers as share
from tests.support.virtual_broker import VirtualBroker


@pytest.fixture
def member() -> share.ShareConsumer:
    broker = VirtualBroker(*share.ONE_PARTITION)
    topic = broker.topic("t")
    share.initialize(broker, topic)
    share.produce_values(broker, b"a", b"b")
    member = share.ShareConsumer(broker, topic)
    assert member.acquire() == [(0, 1, 1)]
    return member


def add(member: share.ShareConsumer, rule: Rule) -> None:
    member.broker.cluster_server.faults.add(rule)


def result(member: share.ShareConsumer) -> int:
    """Accept the records; return the error of the partition."""
    code: int = member.acknowledge((0, 1, [share.ACCEPT])).responses[0].partitions[0].error_code
    return code


def test_lost_locks_fail_acknowledgements_once(member: share.ShareConsumer) -> None:
    add(member, Rule("acquisition-lock-lost", group="group", times=1))
    assert result(member) == ErrorCode.INVALID_RECORD_STATE
    assert member.acquire() == [(0, 1, 2)]
    assert result(member) == ErrorCode.NONE


@pytest.mark.parametrize(("topic", "expected"), [("t", [(0, 1, 2)]), ("other", [])])
def test_accepted_records_are_delivered_again(
    member: share.ShareConsumer, topic: str, expected: list[tuple[int, int, int]]
) -> None:
    add(member, Rule("redelivery", topic=topic, times=1))
    assert result(member) == ErrorCode.NONE
    assert member.acquire() == expected


def test_failed_acknowledgements_have_no_effect(member: share.ShareConsumer) -> None:
    add(member, Rule(AcknowledgementError(code="NOT_LEADER_OR_FOLLOWER"), times=2))
    assert result(member) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    data = share.partition_data(member.fetch((0, 1, [share.ACCEPT])))
    assert (data.error_code, data.acknowledge_error_code) == (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert result(member) == ErrorCode.NONE


def test_the_error_code_is_checked(member: share.ShareConsumer) -> None:
    with pytest.raises(FaultError, match=r"action\.code: unknown error code"):
        add(member, Rule(AcknowledgementError(code="NO_SUCH")))

"""Authorization of every API, compared with the table in tests/support/access.py.

Each use of an API runs with each combination of sufficient ACLs, and without each required ACL.
"""

from collections.abc import Callable
from itertools import product

import pytest

from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.broker.coordinator.group.share.group import ShareGroup
from sluice.broker.exchange.registry import HANDLERS
from sluice.broker.network.connection import Connection
from sluice.broker.security.acl.acl import Acl
from sluice.broker.share.sessions import MemberKey
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis import describe_share_group_offsets as api
from sluice.protocol.apis.fetch import ReplicaState
from sluice.protocol.message import Message
from sluice.protocol.uuids import printed_uuid
from tests.support.access import TABLE, Access, Need
from tests.support.acls import alice, secured_broker
from tests.support.consumer_groups import ConsumerMember
from tests.support.group_members import joined, settled
from tests.support.groups import commit_request, stable_group
from tests.support.messages import request
from tests.support.records import fetch
from tests.support.share_groups import AT_ONCE, ShareMember
from tests.support.streams_groups import StreamsMember, stateless
from tests.support.transactions import add_request, init_request, produce_request
from tests.support.virtual_broker import VirtualBroker
from tests.support.wire import error_codes
from tests.unit.broker.handlers.security.test_create_acls import creation
from tests.unit.broker.handlers.test_handlers import valid_request

Maker = Callable[[bytes], Message]  # id of the topic "t"

AUTHORIZATION = {29, 30, 31, 53}
BROKER, GROUP = 4, 32  # config resource types


def follower_fetch(topic_id: bytes) -> Message:
    sent = fetch(0, topic_id=topic_id)
    sent.replica_state = ReplicaState(replica_id=1)
    return sent


def describe_configs(kind: int, name: str) -> Message:
    return request("DescribeConfigs", resources=[{"resource_type": kind, "resource_name": name}])


def alter_configs(kind: int, name: str) -> Message:
    return request("AlterConfigs", resources=[{"resource_type": kind, "resource_name": name}])


def incremental_alter_configs(kind: int, name: str) -> Message:
    return request("IncrementalAlterConfigs", resources=[{"resource_type": kind, "resource_name": name}])


def delete_acls(_: bytes) -> Message:
    filter_ = {"resource_type_filter": 3, "resource_name_filter": "none", "operation": 1, "permission_type": 1}
    return request("DeleteAcls", filters=[filter_])


def offset_fetch_all(_: bytes) -> Message:
    return request("OffsetFetch", groups=[{"group_id": "empty", "topics": None}])


def share_fetch(topic_id: bytes) -> Message:
    topics = [{"topic_id": topic_id, "partitions": [{}]}]
    return request("ShareFetch", group_id="share", member_id="member", max_records=1, topics=topics)


def share_acknowledge(topic_id: bytes) -> Message:
    topics = [{"topic_id": topic_id, "partitions": [{}]}]
    return request(
        "ShareAcknowledge", group_id="share", member_id="acknowledging", share_session_epoch=1, topics=topics
    )


# API and use: the request, where it differs from the one in test_handlers.py.
REQUESTS: dict[tuple[str, str], Maker] = {
    ("Produce", "transactional"): lambda topic_id: produce_request(13, 0, 0, topic_id=topic_id),
    ("Fetch", "by a follower"): follower_fetch,
    ("Metadata", "of all topics"): lambda _: request("Metadata", topics=None),
    ("Metadata", "that creates a topic"): lambda _: request("Metadata", topics=[{"name": "new"}]),
    ("OffsetFetch", "of all topics"): offset_fetch_all,
    ("FindCoordinator", "of a group"): lambda _: request("FindCoordinator", coordinator_keys=["group"]),
    ("FindCoordinator", "of a transactional id"): lambda _: request(
        "FindCoordinator", key_type=1, coordinator_keys=["tx"]
    ),
    ("FindCoordinator", "of a share partition"): lambda topic_id: request(
        "FindCoordinator", key_type=2, coordinator_keys=[f"share:{printed_uuid(topic_id)}:0"]
    ),
    ("ShareFetch", ""): share_fetch,
    ("ShareAcknowledge", ""): share_acknowledge,
    ("InitProducerId", "transactional"): lambda _: init_request(),
    ("AddPartitionsToTxn", "by a client"): lambda _: add_request(3, 0, 0),
    ("CreateAcls", ""): lambda _: request("CreateAcls", creations=[creation(resource_type=3)]),
    ("DeleteAcls", ""): delete_acls,
    ("DescribeConfigs", "of a group"): lambda _: describe_configs(GROUP, "group"),
    ("DescribeConfigs", "of anything else"): lambda _: describe_configs(BROKER, ""),
    ("AlterConfigs", "of a group"): lambda _: alter_configs(GROUP, "group"),
    ("AlterConfigs", "of anything else"): lambda _: alter_configs(BROKER, ""),
    ("IncrementalAlterConfigs", "of a group"): lambda _: incremental_alter_configs(GROUP, "group"),
    ("IncrementalAlterConfigs", "of anything else"): lambda _: incremental_alter_configs(BROKER, ""),
    ("ConsumerGroupDescribe", ""): lambda _: request("ConsumerGroupDescribe", group_ids=["members"]),
    ("StreamsGroupDescribe", ""): lambda _: request("StreamsGroupDescribe", group_ids=["members of streams"]),
    ("DescribeTopicPartitions", "of all topics"): lambda _: request("DescribeTopicPartitions"),
    ("DescribeShareGroupOffsets", "of all topics"): lambda _: api.DescribeShareGroupOffsetsRequest(
        groups=[api.DescribeShareGroupOffsetsRequestGroup(group_id="share", topics=None)]
    ),
}
# The version, where it is not the latest. The latest AddPartitionsToTxn is for brokers; the latest OffsetFetch has no
# topic names.
VERSIONS = {("AddPartitionsToTxn", "by a client"): 3, ("OffsetFetch", "of all topics"): 9}
NEWEST = {API_KEYS[handler.api_key].name: handler.max_version for handler in HANDLERS.values()}
BY_USE = [pytest.param(access, id=f"{access.api} {access.use}".strip()) for access in TABLE]
SINGLE = [
    pytest.param(
        access, need, id=f"{access.api} {access.use}".strip() + f" without {need.anyone[0].operation.name} on {kind}"
    )
    for access in TABLE
    for need in access.needs
    for kind in [" or ".join(entry.resource_type.name for entry in need.anyone)]
]


def response_to_alice(access: Access, *acls: Acl) -> Message:
    """Return the response to alice with these ACLs, from a broker with topics, groups and transactions."""
    broker = secured_broker("sluice.telemetry=true", AT_ONCE)
    topic = broker.topic()
    populate(broker, topic.topic_id)
    broker.broker.cluster.acls.create(acls)
    use = access.api, access.use
    version = VERSIONS.get(use, NEWEST[access.api])
    make = REQUESTS.get(use)
    request = valid_request(access.api, version, topic.topic_id) if make is None else make(topic.topic_id)
    client = alice(broker)
    client.send(request, version)
    if not client.responses:
        broker.advance(10_000)  # completes the rebalance of JoinGroup
    message: Message = client.response().message
    return message


def populate(broker: VirtualBroker, topic_id: bytes) -> None:
    """Create groups of all types, offsets and an open transaction."""
    stable_group(broker)
    broker.broker.groups.create_classic("empty")
    broker.broker.groups.groups["consumers"] = ConsumerGroup("consumers")
    joined(StreamsMember(broker, group_id="members of streams", topology=stateless()))
    joined(ConsumerMember(broker, group_id="members"))
    (sharing,) = settled(ShareMember(broker, group_id="share"))
    sessions = broker.broker.share_partitions.sessions
    assert isinstance(sharing.client.protocol, Connection)
    sessions.open(MemberKey("share", "acknowledging"), sharing.client.protocol, {(topic_id, 0): True})
    broker.broker.groups.groups["empty-share"] = ShareGroup("empty-share")
    client = broker.client()
    assert error_codes(client.call(commit_request(group_id="empty", topic_id=topic_id), 9)) == []
    assert error_codes(client.call(init_request(), 5)) == []
    assert error_codes(client.call(add_request(3, 0, 0), 3)) == []


def test_every_served_api_is_in_the_table() -> None:
    assert {access.api for access in TABLE} == set(NEWEST)


@pytest.mark.parametrize("access", BY_USE)
def test_api_is_allowed_with_any_sufficient_acls(access: Access) -> None:
    for acls in product(*(need.anyone for need in access.needs)):
        message = response_to_alice(access, *acls)
        assert AUTHORIZATION.isdisjoint(error_codes(message)), acls
        for need in access.needs:
            assert need.left_out in repr(message), acls


@pytest.mark.parametrize(("access", "need"), SINGLE)
def test_api_is_rejected_without_a_required_acl(access: Access, need: Need) -> None:
    message = response_to_alice(access, *(other.anyone[0] for other in access.needs if other is not need))
    if need.left_out:
        assert need.left_out not in repr(message)
        assert AUTHORIZATION.isdisjoint(error_codes(message))
    else:
        assert set(error_codes(message)) == {need.code}

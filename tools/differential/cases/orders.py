"""The order of the elements of responses, where Kafka's is not that of the request."""

from typing import Any
from uuid import UUID

from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record
from tests.support.messages import request
from tools.differential import requests
from tools.differential.case import Layout, case
from tools.differential.session import Session

# Kafka orders groups by the partitions of their coordinators.
SEVERAL_COORDINATORS = Layout(("offsets.topic.num.partitions=50",), name="several coordinators")
_STRANGE_ID = UUID(int=7).bytes
_UNORDERED = ("topics", "partitions")  # of a group with all its offsets
_FIRST_WITH_GROUPS, _FIRST_WITH_IDS = 8, 10


def commit_offsets(session: Session, group: str, topics: dict[str, list[int]]) -> None:
    """Commit an offset of each partition, for a group without members."""
    session.wait_for(
        requests.coordinator(group, requests.GROUP), lambda response: response.coordinators[0].error_code == 0
    )
    session.wait_for(
        requests.commit(group, [_committed(name, indexes) for name, indexes in topics.items()]),
        lambda response: all(not one.error_code for topic in response.topics for one in topic.partitions),
        requests.OFFSETS_VERSION,
    )


def _committed(name: str, indexes: list[int]) -> dict[str, Any]:
    return {"name": name, "partitions": [{"partition_index": one, "committed_offset": one} for one in indexes]}


@case()
def fetch_offsets(session: Session) -> None:
    ids = {name: session.create_topic(name, 3) for name in ("orders-a", "orders-b")}
    commit_offsets(session, "orders", {name: [0, 2] for name in ids})
    asked = {"orders-a": [2, 0, 1], "none-a": [1, 0], "orders-b": [5, 0], "none-b": [0]}
    for version in (7, 8, 9, 10):
        if version < _FIRST_WITH_GROUPS:
            topics = [{"name": name, "partition_indexes": given} for name, given in asked.items()]
            session.call(request("OffsetFetch", group_id="orders", topics=topics), version)
            session.call(request("OffsetFetch", group_id="orders", topics=None), version, unordered=_UNORDERED)
            continue
        with_ids = version >= _FIRST_WITH_IDS
        given = [
            {"topic_id": ids.get(name, _STRANGE_ID), "partition_indexes": indexes}
            if with_ids
            else {"name": name, "partition_indexes": indexes}
            for name, indexes in asked.items()
        ]
        groups = [{"group_id": group, "topics": given} for group in ("orders", "", "orders-missing")]
        session.call(request("OffsetFetch", groups=groups), version)
        every = [{"group_id": "orders", "topics": None}]
        session.call(request("OffsetFetch", groups=every), version, unordered=_UNORDERED)


@case()
def delete_offsets(session: Session) -> None:
    for name in ("orders-deleted-a", "orders-deleted-b"):
        session.create_topic(name, 3)
    commit_offsets(session, "orders-deleted", {"orders-deleted-a": [0, 2], "orders-deleted-b": [0]})
    asked = {"orders-deleted-a": [2, 7, 0, 1], "none-a": [1, 0], "orders-deleted-b": [0, 5], "none-b": [0]}
    topics = [
        {"name": name, "partitions": [{"partition_index": one} for one in indexes]} for name, indexes in asked.items()
    ]
    for group in ("orders-deleted", "", "orders-missing"):
        session.call(request("OffsetDelete", group_id=group, topics=topics))
    session.call(request("OffsetDelete", group_id="orders-deleted", topics=topics[2:3]))
    session.call(request("OffsetDelete", group_id="orders-deleted", topics=topics[1:2]))


@case(SEVERAL_COORDINATORS)
def describe_groups(session: Session) -> None:
    session.create_topic("orders-groups")
    names = [f"group-{number}" for number in range(20)]
    for name in names[::3]:
        commit_offsets(session, name, {"orders-groups": [0]})
    for version in (5, 6):
        session.call(request("DescribeGroups", groups=["", *names[:3]]), version)
        session.call(request("DescribeGroups", groups=[*names[::-1], "", "missing"]), version)
    for kind in ("Consumer", "Share", "Streams"):
        session.call(request(f"{kind}GroupDescribe", group_ids=[*names[::-1], "", "missing"]), 1)


@case()
def describe_producers(session: Session) -> None:
    session.create_topic("orders-producers", 2)
    for producer_id in (70, 33, 16, 5, 1_000, 21, 64, 3, 48, 2_000, 17, 6, 9, 80):
        batch = build_batch(
            [Record(0, 1_700_000_000_000, None, b"x")], producer_id=producer_id, producer_epoch=0, base_sequence=0
        )
        session.request(requests.produce("orders-producers", batch), requests.PRODUCE_VERSION)
        given = [{"name": name, "partition_indexes": [1, 0, 7]} for name in ("orders-producers", "none", "a b")]
        response = session.request(request("DescribeProducers", topics=given))
        found = response.topics[0].partitions[1].active_producers
        session.note("producers", [[one.producer_id, one.last_sequence] for one in found])
    session.call(request("DescribeProducers", topics=given[1:]))


@case()
def subscribe_to_a_pattern(session: Session) -> None:
    session.create_topic("orders-pattern")
    commit_offsets(session, "orders-pattern", {"orders-pattern": [0]})
    for pattern in (r"\C", r"a\C", r"\\C", "[\\C]", r"\Q\C\E", "(", "a**", r"\p{Greek}", "(?i)a", "(?<n>a)", r"\8"):
        heartbeat = request(
            "ConsumerGroupHeartbeat",
            group_id="orders-pattern",
            member_id="member-1",
            member_epoch=0,
            rebalance_timeout_ms=30_000,
            subscribed_topic_regex=pattern,
            topic_partitions=[],
        )
        session.call(heartbeat, only=["error_code", "error_message"])

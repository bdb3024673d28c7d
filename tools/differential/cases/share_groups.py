"""Share groups: what sessions, records in flight and altered offsets do with unusual values."""

from functools import partial
from itertools import count
from typing import Any

from sluice.broker.controller.configs.resource import GROUP
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record
from sluice.protocol.uuids import printed_uuid
from tests.support.messages import request
from tests.support.wire import error_codes
from tools.differential import requests
from tools.differential.case import Layout, case
from tools.differential.cases.reports import Acknowledged, acknowledge, share_fetch, share_group
from tools.differential.requests import GROUP as OF_GROUPS
from tools.differential.session import Session, until

_ACCEPT, _RELEASE, _REJECT, _RENEW = 1, 2, 3, 4
_RECORD_LIMIT = 1
_UNKNOWN_ID = bytes(15) + b"\7"
_LISTS = ["responses", "partitions"]
_MISSING = {ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class _Member:
    """A share session of the only topic of a group, which counts its epochs."""

    def __init__(self, session: Session, group: str, *values: str, reset: str = "earliest") -> None:
        self.group = group
        self.topic_id = share_group(session, group, *values, reset=reset)
        self._session = session
        self._epochs = count()

    def request(self, *acknowledged: Acknowledged, **fields: Any) -> Message:
        usual = {"max_wait_ms": 0, "max_records": 100, "batch_size": 100} | fields
        epoch = usual.pop("share_session_epoch", None)
        return share_fetch(
            self.group, self.topic_id, next(self._epochs) if epoch is None else epoch, *acknowledged, **usual
        )

    def fetch(self, *acknowledged: Acknowledged, version: int = 2, **fields: Any) -> None:
        self._session.call(self.request(*acknowledged, **fields), version, unordered=_LISTS)

    def acquire(self, **fields: Any) -> None:
        """Fetch until records are acquired, because Kafka writes acknowledgements after its response."""

        def fetch() -> Any:
            response = self._session.request(self.request(**fields))
            return [one for topic in response.responses for each in topic.partitions for one in each.acquired_records]

        found = until(fetch, bool)
        self._session.note("acquired", [(one.first_offset, one.last_offset, one.delivery_count) for one in found])

    def acknowledge(self, *acknowledged: Acknowledged, version: int = 2, **fields: Any) -> None:
        sent = acknowledge(self.group, self.topic_id, next(self._epochs), *acknowledged)
        for name, value in fields.items():
            setattr(sent, name, value)
        self._session.call(sent, version)


@case()
def share_sessions_with_unusual_fields(session: Session) -> None:
    member = _Member(session, "share-fields", "a", "b", "c", "d")
    unknown = [{"topic_id": each, "partitions": [{"partition_index": 7}]} for each in (_UNKNOWN_ID, member.topic_id)]
    member.fetch(topics=unknown)
    member.fetch(max_bytes=0)
    member.fetch(max_records=-1)
    member.fetch(share_acquire_mode=2)
    member.fetch(forgotten_topics_data=[{"topic_id": _UNKNOWN_ID, "partitions": [7]}])
    member.fetch((0, 0, [_RENEW]), is_renew_ack=True, share_session_epoch=99)
    nothing = {"max_bytes": 0, "min_bytes": 0, "max_records": 0}
    member.fetch((0, 0, [_RENEW]), is_renew_ack=True, **nothing)
    member.fetch((0, 0, [_ACCEPT]), is_renew_ack=True, **nothing)
    member.acknowledge((0, 0, [_RENEW]), is_renew_ack=True)
    member.acknowledge((0, 1, [_RENEW, _ACCEPT]), is_renew_ack=True)
    member.acknowledge((0, 0, [_RENEW]))
    member.acknowledge((0, 0, [_RENEW]), version=1)
    member.fetch((0, 0, [_RENEW]), version=1)


@case()
def topics_deleted_during_a_share_session(session: Session) -> None:
    member = _Member(session, "share-deleted", "a")
    member.acquire()
    session.request(request("DeleteTopics", topics=[{"name": member.group}], timeout_ms=30_000))
    found = until(
        lambda: session.request(member.request(topics=[])), lambda each: _MISSING.intersection(error_codes(each))
    )
    session.note("fetched", session.masked(found))
    member.fetch((0, 0, [_ACCEPT]))
    member.acknowledge((0, 0, [_ACCEPT]))


@case()
def records_that_were_delivered_often(session: Session) -> None:
    member = _Member(session, "share-deliveries", "a")
    member.acquire()
    member.acknowledge((0, 0, [_ACCEPT]))
    _produce(session, member.group, 20)
    member.acquire()
    for _ in range(2):
        member.acknowledge((13, 20, [_RELEASE]))
        member.acquire()
    member.acknowledge((1, 20, [_RELEASE]))
    member.fetch(max_records=15, share_acquire_mode=_RECORD_LIMIT)
    member.acknowledge((1, 15, [_RELEASE]))
    for _ in range(4):
        member.acquire()


def _produce(session: Session, topic: str, values: int, **fields: Any) -> None:
    records = [Record(offset, 1000, b"key", b"value") for offset in range(values)]
    transactional_id = fields.pop("transactional_id", None)
    response = session.request(
        requests.produce(topic, build_batch(records, **fields), transactional_id), requests.PRODUCE_VERSION
    )
    assert not error_codes(response), response


def _describe(session: Session, group: str, topics: Any = None) -> None:
    session.call(request("DescribeShareGroupOffsets", groups=[{"group_id": group, "topics": topics}]))


@case()
def acknowledged_parts_and_deleted_records(session: Session) -> None:
    group = "share-parts"
    member = _Member(session, group, "a")
    for values in (3, 1, 1, 4, 10):
        _produce(session, group, values)
    member.acquire(max_records=1)
    member.acquire(max_records=2, batch_size=1)
    member.acquire(max_records=3, batch_size=2)
    member.acquire(max_records=4, share_acquire_mode=_RECORD_LIMIT)
    member.acknowledge((0, 3, [_ACCEPT, 0, _RELEASE, _REJECT]), (4, 4, [_RELEASE]))
    member.acknowledge((5, 9, [_ACCEPT]), (10, 10, [0]))
    _describe(session, group)
    member.acquire(max_records=2, share_acquire_mode=_RECORD_LIMIT)
    member.acknowledge((2, 3, [_ACCEPT]))
    member.acknowledge((2, 2, [_ACCEPT]))
    deleted = [{"name": group, "partitions": [{"partition_index": 0, "offset": 12}]}]
    session.request(request("DeleteRecords", topics=deleted, timeout_ms=30_000))
    member.acknowledge((4, 4, [_ACCEPT]))
    member.acknowledge((4, 40, [_ACCEPT]))
    member.acquire()
    member.acknowledge((11, 14, [_ACCEPT]))
    member.acknowledge((10, 19, [_ACCEPT]))
    _describe(session, group)
    member.fetch(share_session_epoch=-1)
    _describe(session, group)
    session.call(request("ShareGroupDescribe", group_ids=[group, "", "share-none", group]))


def _has_end(end: int, response: Any) -> bool:
    found: int = response.topics[0].partitions[0].offset
    return found == end


@case()
def committed_records_of_share_groups(session: Session) -> None:
    group = "share-committed"
    configs = [{"name": "share.isolation.level", "value": "read_committed"}]
    resources = [{"resource_type": GROUP, "resource_name": group, "configs": configs}]
    session.request(request("IncrementalAlterConfigs", resources=resources))
    member = _Member(session, group, "a")
    member.acquire()
    transaction = {"transactional_id": group}
    session.wait_for(requests.coordinator(group, requests.TRANSACTION), lambda found: not error_codes(found))
    producer = session.wait_for(
        requests.init_producer(group), lambda found: not found.error_code, requests.INIT_PRODUCER_ID_VERSION
    )
    for number, committed in enumerate((False, True, False)):
        session.wait_for(requests.add_partitions(producer, group, group, 0), lambda found: not error_codes(found), 3)
        fields = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        _produce(session, group, 3, **transaction, **fields, base_sequence=3 * number, transactional=True)
        member.fetch()
        session.wait_for(requests.end_txn(producer, group, committed=committed), lambda found: not found.error_code, 3)
        end = 5 * (number + 1)
        session.wait_for(requests.list_offsets(group, requests.LATEST, isolation_level=1), partial(_has_end, end))
        _produce(session, group, 1)
        member.acquire()
    _describe(session, group)


@case()
def start_offsets_outside_the_log(session: Session) -> None:
    group = "share-starts"
    topic_id = printed_uuid(share_group(session, group, "a", "b"))
    session.request(request("ShareGroupHeartbeat", group_id=group, member_id="A" * 20 + "01", member_epoch=-1))
    for partition, offset in ((-1, 0), (0, -5), (0, 100), (0, 1), (0, -1)):
        changed = [{"partition_index": partition, "start_offset": offset}]
        topics = [{"topic_name": group, "partitions": changed}]
        altered = session.request(request("AlterShareGroupOffsets", group_id=group, topics=topics))
        altered.error_message = altered.error_message and altered.error_message.replace(topic_id, "ID")
        session.note("altered", session.masked(altered))
        described = [{"group_id": group, "topics": [{"topic_name": group, "partitions": [partition]}]}]
        session.call(request("DescribeShareGroupOffsets", groups=described))
    for name, partitions in (("", [0]), (group, [])):
        described = [{"group_id": name, "topics": [{"topic_name": group, "partitions": partitions}]}]
        session.call(request("DescribeShareGroupOffsets", groups=described))


@case()
def durations_of_offset_resets(session: Session) -> None:
    for reset in ("by_duration:p25000d", "by_duration:P25000DT5.S"):
        _Member(session, f"share-{reset.partition(':')[2]}", "a", reset=reset).acquire()


@case(Layout(brokers=2, racks=("a", "b")))
def requests_to_another_broker(session: Session) -> None:
    """Send requests to the broker that neither leads the partition nor is the coordinator."""
    group = "share-other"
    topic_id = session.create_topic(group, assignments=[[1]])
    found = session.wait_for(requests.coordinator(group, OF_GROUPS), lambda found: not error_codes(found))
    other = 3 - found.coordinators[0].node_id
    for epoch in (0, 1):
        session.call(share_fetch(group, topic_id, epoch, max_wait_ms=0), node=2)
    session.call(acknowledge(group, topic_id, 2, (0, 0, [_ACCEPT])), node=2)
    session.call(share_fetch(group, topic_id, 3, (0, 0, [_ACCEPT]), max_wait_ms=0), node=2)
    changed = {"topic_name": group, "partitions": [{"partition_index": 0, "start_offset": 0}]}
    for message in (
        request("AlterShareGroupOffsets", group_id=group, topics=[changed]),
        request("DeleteShareGroupOffsets", group_id=group, topics=[{"topic_name": group}]),
        request("DescribeShareGroupOffsets", groups=[{"group_id": group, "topics": None}]),
        request("ShareGroupDescribe", group_ids=[group, ""]),
        request("ShareGroupHeartbeat", group_id=group, member_id="m", subscribed_topic_names=[group]),
    ):
        session.call(message, node=other)

"""Share groups: what sessions, records in flight and altered offsets do with unusual values."""

from itertools import count
from typing import Any

from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record
from sluice.protocol.uuids import printed_uuid
from tests.support.messages import request
from tests.support.wire import error_codes
from tools.differential.case import case
from tools.differential.cases.reports import Acknowledged, acknowledge, share_fetch, share_group
from tools.differential.requests import PRODUCE_VERSION, produce
from tools.differential.session import Session, until

_ACCEPT, _RELEASE, _RENEW = 1, 2, 4
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

    def acquire(self) -> None:
        """Fetch until records are acquired, because Kafka writes acknowledgements after its response."""

        def fetch() -> Any:
            response = self._session.request(self.request())
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
    records = build_batch([Record(offset, 1000, b"key", b"value") for offset in range(20)])
    session.request(produce(member.group, records), PRODUCE_VERSION)
    member.acquire()
    for _ in range(2):
        member.acknowledge((13, 20, [_RELEASE]))
        member.acquire()
    member.acknowledge((1, 20, [_RELEASE]))
    member.fetch(max_records=15, share_acquire_mode=_RECORD_LIMIT)
    member.acknowledge((1, 15, [_RELEASE]))
    for _ in range(4):
        member.acquire()


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

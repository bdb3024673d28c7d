"""Names of topics that Kafka reserves, that are invalid, or that are those of files, in every API that names a topic.

A step sends one form of a request for each name. Its note has the answer that most names got, and the answers of the
others by name. In answers, `<name>` and `<topic id>` stand for the topic's own.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID
from sluice.protocol.uuids import printed_uuid
from tests.support.messages import request
from tests.support.topic_requests import SOURCE, TIMEOUT_MS, UNKNOWN_ID, USES, Target, Use, add_offsets_to_txn
from tools.differential.case import DISK, Layout, case
from tools.differential.requests import coordinator, create_topics, init_producer, metadata
from tools.differential.session import Session

METADATA = "__cluster_metadata"
INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
INVALID = {
    "(empty)": "",
    ".": ".",
    "..": "..",
    "(250 characters)": "n" * 250,
    "(1000 characters)": "n" * 1000,
    "a/b": "a/b",
    "../meta.properties": "../meta.properties",
    "a b": "a b",
    "a:b": "a:b",
    "(newline)": "a\n",
    "(null character)": "a\0",
    "ä": "ä",
}
# Valid: those of other systems, of Kafka's own topics in another form, and of files in a data directory.
ORDINARY = {
    "(249 characters)": "n" * 249,
    "__sluice_journal": "__sluice_journal",
    "__remote_log_metadata": "__remote_log_metadata",
    "__CLUSTER_METADATA": "__CLUSTER_METADATA",
    "__cluster_metadata-0": "__cluster_metadata-0",
    "_metadata": "_metadata",
    "__consumer_offsets-0": "__consumer_offsets-0",
    "__Consumer_Offsets": "__Consumer_Offsets",
    "app-store-changelog": "app-store-changelog",
    "app-words-repartition": "app-words-repartition",
    "app.a-b": "app.a-b",
    "CASE": "CASE",
    "case": "case",
    "x-0": "x-0",
    "x-0-1": "x-0-1",
    "-0": "-0",
    "0": "0",
    "...": "...",
    "_": "_",
    "-": "-",
    ".lock": ".lock",
    ".kafka_cleanshutdown": ".kafka_cleanshutdown",
    "meta.properties": "meta.properties",
    "bootstrap.checkpoint": "bootstrap.checkpoint",
    "recovery-point-offset-checkpoint": "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint": "log-start-offset-checkpoint",
    "replication-offset-checkpoint": "replication-offset-checkpoint",
    "cleaner-offset-checkpoint": "cleaner-offset-checkpoint",
    "leader-epoch-checkpoint": "leader-epoch-checkpoint",
    "partition.metadata": "partition.metadata",
    "quorum-state": "quorum-state",
    "reserved-space": "reserved-space",
    "remote-log-index-cache": "remote-log-index-cache",
    "00000000000000000000.log": "00000000000000000000.log",
    "00000000000000000000.log.deleted": "00000000000000000000.log.deleted",
    "t-0.uuid-delete": "t-0.0123456789abcdef0123456789abcdef-delete",
    "t-0.uuid-future": "t-0.0123456789abcdef0123456789abcdef-future",
    "t-0.uuid-stray": "t-0.0123456789abcdef0123456789abcdef-stray",
    "t-delete": "t-delete",
    "t-future": "t-future",
    "NUL": "NUL",
}
_INTERNAL = {name: name for name in INTERNAL}
_KEPT = "names-kept"
UNCREATABLE = {METADATA: METADATA, **INVALID}
MOST = "most names"
# What depends on the time, on the machine, or on how many records the coordinators have written.
_VARIABLE = {
    "usable_bytes", "total_bytes", "log_dir", "high_watermark", "last_stable_offset", "log_end_offset",
    "last_fetch_timestamp", "last_caught_up_timestamp", "leader_epoch", "current_voters", "observers", "nodes",
}  # fmt: skip
_VARIABLE_OF_INTERNAL = {
    "records", "offset", "end_offset", "partition_size", "low_watermark", "active_producers", "acquired_records",
}  # fmt: skip


class _Names:
    """Names of topics, and the requests for all of them."""

    def __init__(self, session: Session, names: Mapping[str, str], state: str) -> None:
        self._session = session
        self._names = names
        self._state = state
        self.ids: dict[str, bytes] = {}
        self._barriers = 0
        self._log_dir = session.request(request("DescribeLogDirs", topics=[])).results[0].log_dir

    def send(self, uses: Iterable[Use]) -> None:
        """Send each form of each use for all names, and note the answers."""
        for use in uses:
            for version in use.forms():
                if use.loads:
                    self._answers(use, version)
                self._session.note(use.label(version), _grouped(self._answers(use, version)))

    def create(self) -> None:
        response = self._session.request(_create(*self._names.values()))
        assert {topic.error_code for topic in response.topics} <= {0, ErrorCode.TOPIC_ALREADY_EXISTS}, response
        for name in self._names.values():
            self._session.wait_for_leaders(name)
        self.learn_ids()

    def existing(self) -> list[str]:
        """Return the topics that exist after all creations that were requested before this call."""
        self._barriers += 1
        self._session.create_topic(f"{SOURCE}-{self._state}-{self._barriers}")
        response = self._session.request(metadata(*filter(None, self._names.values())))
        found = {topic.name: topic for topic in response.topics if topic.topic_id != ZERO_UUID}
        return [title for title, name in self._names.items() if name in found]

    def learn_ids(self) -> None:
        response = self._session.request(request("Metadata", topics=None))
        self.ids = {topic.name: topic.topic_id for topic in response.topics}

    def delete(self) -> None:
        self.learn_ids()
        topics = [{"name": name} for name in self._names.values() if name in self.ids]
        self._session.request(request("DeleteTopics", topics=topics, timeout_ms=TIMEOUT_MS))

    def _answers(self, use: Use, version: int) -> dict[str, Any]:
        return {
            title: self._send(use, version, self._target(name, number))
            for number, (title, name) in enumerate(self._names.items())
        }

    def _target(self, name: str, number: int) -> Target:
        return Target(name, self.ids.get(name, UNKNOWN_ID), f"{self._state}-{number}", self._log_dir)

    def _send(self, use: Use, version: int, target: Target) -> Any:
        session = self._session
        if use.in_transaction:
            target = in_transaction(session, use, version, target)
        built = use.build(version, target)
        if use.is_answered:
            return plain(session.masked(session.request(built, version)), target)
        session.send(built, version, client_id="acks=0")
        following = session.request(request("ApiVersions"), 0, client_id="acks=0")
        return "connection closed" if following is None else "no answer"


def in_transaction(session: Session, use: Use, version: int, target: Target) -> Target:
    target = target._replace(key=f"{use.api}-{version}-{target.key}")
    response = session.request(init_producer(target.key), 4)
    assert response.error_code == ErrorCode.NONE, response
    target = target._replace(producer_id=response.producer_id, producer_epoch=response.producer_epoch)
    if use.api == "TxnOffsetCommit":
        added = session.request(add_offsets_to_txn(target), 3)
        assert added.error_code == ErrorCode.NONE, added
    return target


def plain(value: Any, target: Target) -> Any:
    if isinstance(value, dict):
        left_out = _VARIABLE_OF_INTERNAL if target.name in INTERNAL else ()
        return {
            key: "..." if key in _VARIABLE or (key == "configs" and len(item) > 1) else plain(item, target)
            for key, item in value.items()
            if key not in left_out
        }
    if isinstance(value, list):
        return [plain(item, target) for item in value]
    if isinstance(value, str):
        value = value.replace(target.log_dir, "<log dir>").replace(target.key, "<key>")
        value = value.replace(printed_uuid(target.topic_id), "<topic id>")
        return value.replace(target.name, "<name>") if len(target.name) > 2 or value == target.name else value
    return value


def _grouped(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the most frequent answer, and the names with another one."""
    texts = {title: json.dumps(answer) for title, answer in found.items()}
    ((most, _),) = Counter(texts.values()).most_common(1)
    return {MOST: json.loads(most)} | {title: found[title] for title, text in texts.items() if text != most}


def _create(*names: str) -> Message:
    topics = ({"name": name, "num_partitions": 1, "replication_factor": 1} for name in names)
    return create_topics(*topics)


def make_coordinators_ready(session: Session) -> None:
    """Create the coordinators' topics."""
    for key_type, key in ((0, "group"), (1, "transaction"), (2, "group:AAAAAAAAAAAAAAAAAAAAAQ:0")):
        session.eventually(
            coordinator(key, key_type),
            6,
            lambda response: not response.coordinators[0].error_code,
            only=["throttle_time_ms"],
        )
    _loaded(session)
    for name in INTERNAL:
        session.wait_for_leaders(name)


def ready(session: Session) -> None:
    """Create the coordinators' topics, and a topic that Streams groups read."""
    make_coordinators_ready(session)
    session.create_topic(SOURCE)


def _loaded(session: Session) -> None:
    """Wait until the coordinators have loaded their topics."""
    for loading, version in ((init_producer("ready"), 4), (request("OffsetFetch", group_id="ready", topics=[]), 7)):
        session.eventually(loading, version, lambda response: not response.error_code, only=["throttle_time_ms"])


_READS = [use for use in USES if not use.creates and not use.destroys]
_CREATES = [use for use in USES if use.creates]
_DESTROYS = [use for use in USES if use.destroys]
_RECORDS = [use for use in _READS if use.api in ("Produce", "Fetch", "ListOffsets")]
_COORDINATED = ("Offset", "TxnOffset", "AddPartitionsToTxn", "FindCoordinator", "ConsumerGroup", "Share", "Streams")
_WITHOUT_COORDINATORS = [
    use for use in _READS if not use.api.startswith(_COORDINATED) and "ShareGroupOffsets" not in use.api
]
_JOURNAL = {"*.__sluice_journal*": "the topic of sluice's journal is read-only for clients, as Kafka's internal topics"}


@case(Layout(name="names without a topic", storages=(DISK,)), explained=_JOURNAL)
def names_without_a_topic(session: Session) -> None:
    ready(session)
    names = _Names(session, UNCREATABLE | ORDINARY, "missing")
    names.send([*_READS, *_DESTROYS])
    session.note("topics", names.existing())


@case(Layout(name="names that no topic can have"))
def names_that_no_topic_can_have(session: Session) -> None:
    ready(session)
    names = _Names(session, UNCREATABLE, "invalid")
    names.send(_CREATES)
    session.note("topics", names.existing())


@case(Layout(name="names with a topic", storages=(DISK,)), explained=_JOURNAL)
def names_with_a_topic(session: Session) -> None:
    ready(session)
    ordinary = _Names(session, ORDINARY, "ordinary")
    ordinary.create()
    names = _Names(session, ORDINARY | _INTERNAL, "existing")
    names.learn_ids()
    names.send([*_READS, *_CREATES])
    ordinary.send([use for use in _DESTROYS if use.title == "by name and id"])
    ordinary.send([use for use in _DESTROYS if use.title == "by id"])
    session.note("topics", ordinary.existing())


@case(Layout(name="internal topics that do not exist"))
def internal_topics_that_do_not_exist(session: Session) -> None:
    names = _Names(session, _INTERNAL, "missing")
    names.send([*_WITHOUT_COORDINATORS, *_DESTROYS])
    session.note("topics", names.existing())


@case(Layout(name="names that collide"))
def names_that_collide_in_metrics_or_differ_by_case(session: Session) -> None:
    session.create_topic("collide.a")
    session.create_topic(SOURCE)
    for name in ("collide_a", "Collide.a", "collide.A"):
        session.call(_create(name), 4)
    session.call(_create("collide.b", "collide_b", "collide-b"), 4, unordered=["topics"])
    for name in ("collide_a", "collide.c", "collide_c"):
        session.call(metadata(name, auto_create=True), 9, only=["topics"])
    names = ("collide.a", "collide_a", "Collide.a", "collide.A", "collide.b", "collide_b", "collide.c", "collide_c")
    session.note("topics", _Names(session, {name: name for name in names}, "collide").existing())


@case(Layout(name="names and a restart", storages=(DISK,)), explained=_JOURNAL)
def names_and_a_restart(session: Session) -> None:
    ready(session)
    session.create_topic(_KEPT, configs={"retention.ms": "-1"})
    kept = _Names(session, {_KEPT: _KEPT}, "kept")
    entity = [{"entity_type": "client-id", "entity_name": "kept"}]
    quota = {"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 12345.0}]}
    session.call(request("AlterClientQuotas", entries=[quota]), 1)
    kept.learn_ids()
    kept.send([use for use in USES if use.api in ("Produce", "OffsetCommit", "IncrementalAlterConfigs")])
    names = _Names(session, UNCREATABLE | ORDINARY, "restarted")
    names.send([use for use in _CREATES if use.api != "StreamsGroupHeartbeat"])
    names.existing()
    names.learn_ids()
    names.send(_RECORDS)
    for kill in (False, True):
        session.restart(kill=kill)
        _loaded(session)
        for name in (_KEPT, *ORDINARY.values()):
            session.wait_for_leaders(name)
        session.note("topics", names.existing())
        kept.send([use for use in USES if use.api in ("DescribeConfigs", "OffsetFetch", "Fetch", "Metadata")])
        session.call(request("DescribeClientQuotas", components=[], strict=False), 1)
        names.send([use for use in USES if use.api in ("Fetch", "ListOffsets")])

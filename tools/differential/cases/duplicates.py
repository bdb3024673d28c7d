"""Repeated elements in every array of every request: topics, partitions, groups, members, configs, protocols, tasks.

A row is one array of one form of a request. It sends the request with the array's first element repeated: equal; equal
with another element between; with other values; and, in an array of arrays, with another partition. Each row has a
topic and a group of its own, and its note has the answer and what has changed.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from sluice.broker.exchange.advertised_versions import advertised_by
from sluice.broker.exchange.registry import FORWARDED
from sluice.protocol.apis import API_KEYS
from sluice.protocol.message import Message, fields_of
from sluice.protocol.types import PARTITION, TOPIC_ID
from tests.support.messages import request
from tests.support.records import batch
from tests.support.topic_requests import MEMBER_ID, RELEASE, SOURCE, TIMEOUT_MS, UNKNOWN_ID, USES, Target, Use
from tools.differential.case import Layout, case
from tools.differential.cases.reserved_names import in_transaction, make_coordinators_ready, plain
from tools.differential.requests import create_topics, list_offsets, metadata, old_offsets
from tools.differential.session import ANSWERED_WITHIN_S, Session

_LAYOUT = Layout(name="duplicates")
_PARTITIONS = 2
_OTHER = "duplicates-other"
# The fields by which elements are equal.
_KEYS = {
    *("name", "topic", "topic_name", "topic_id", "index", "partition", "partition_index", "group_id", "member_id"),
    *("group_instance_id", "resource_type", "resource_name", "path", "key", "feature", "entity_type", "user"),
    *("subtopology_id", "transactional_id", "producer_id", "principal", "host", "operation", "permission_type"),
}
# Other values of the fields that are not keys.
_VALUES: dict[str, Any] = {
    "assignment": b"other",
    "committed_metadata": "other",
    "committed_offset": 5,
    "count": 4,
    "fetch_offset": 1,
    "iterations": 8192,
    "metadata": b"other",
    "num_partitions": 3,
    "offset": 1,
    "records": batch(b"v", b"w", b"x"),
    "remove": True,
    "replicas": [1],
    "start_offset": 1,
    "timestamp": -2,
    "value": "60003",
}

# Kafka does not respond to some of these, because of an internal error.
_WITHIN_S = dict.fromkeys(("AlterConfigs", "JoinGroup", "WriteTxnMarkers"), 2.0)


class Base(NamedTuple):
    """A request whose elements are repeated.

    Args:
        label: The API, its version, and what it does.
        build: Prepares the state that the request needs, and returns it.
        creates: Whether it creates its topic.
        loads: Whether a first request starts to load state, so that its response depends on the time.
    """

    label: str
    version: int
    build: Callable[[Session, Target], Message]
    creates: bool = False
    loads: bool = False

    @property
    def api(self) -> str:
        return self.label.partition(" ")[0]

    @property
    def is_forwarded(self) -> bool:
        """Whether the controller responds, so that the broker may know the results later."""
        (key,) = (key for key, api in API_KEYS.items() if api.name == self.api)
        return key in FORWARDED


# -- The repetitions ---------------------------------------------------------------------------------------------------


def arrays(message: Message, version: int, path: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield the arrays of a request that are not empty, by their paths."""
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if version not in field.versions or not value:
            continue
        if field.is_array:
            yield path + field.name, value
        first = value[0] if field.is_array else value
        if isinstance(first, Message):
            yield from arrays(first, version, f"{path}{field.name}.")


def repetitions(element: Any, to: Target, other: Target) -> Iterator[tuple[str, list[Any]]]:
    """Yield the arrays with an element repeated, by their titles."""
    yield "twice", [element, element]
    yield "around another", [element, _another(element, to, other), element]
    if isinstance(element, Message):
        for title, changed in (("with other values", _with_values(element)), ("in parts", _with_partition(element))):
            if changed != element:
                yield title, [element, changed]


def _another(element: Any, to: Target, other: Target) -> Any:
    """Return an element with another key."""
    if not isinstance(element, Message):
        if isinstance(element, str):
            return element.replace(to.name, other.name) if to.name in element else f"{element}x"
        return other.topic_id if isinstance(element, bytes) else element + 1
    changed: dict[str, Any] = {}
    for field in fields_of(type(element)):
        value = getattr(element, field.name)
        if field.name not in _KEYS or (field.tag is None and value is None):
            continue
        if field.meaning.entity == TOPIC_ID:
            changed[field.name] = other.topic_id
        elif isinstance(value, str) and value and not changed.keys() - {"topic_id"}:
            changed[field.name] = _another(value, to, other)
        elif isinstance(value, int) and not changed and field.name != "resource_type":
            changed[field.name] = value + 1
    return _changed(element, changed)


def _with_values(element: Message, *, is_top: bool = True) -> Message:
    """Return an element with the same keys and other values."""
    changed: dict[str, Any] = {}
    for field in fields_of(type(element)):
        value = getattr(element, field.name)
        if field.is_array and value and isinstance(value[0], Message):
            changed[field.name] = [_with_values(one, is_top=False) for one in value]
        elif field.name in _VALUES and type(_VALUES[field.name]) is type(value):
            changed[field.name] = _VALUES[field.name]
    return _changed(element, changed)


def _with_partition(element: Message) -> Message:
    """Return an element with the same key, whose partitions are others."""
    changed: dict[str, Any] = {}
    for field in fields_of(type(element)):
        value = getattr(element, field.name)
        if field.is_array and value:
            first = value[0]
            if isinstance(first, Message):
                fields = fields_of(type(first))
                index = next((one.name for one in fields if one.meaning.entity == PARTITION and not one.is_array), None)
                changed[field.name] = [_changed(first, {index: 1}) if index else _with_partition(first)]
            elif field.meaning.entity == PARTITION:
                changed[field.name] = [1]
    return _changed(element, changed)


def _changed(message: Message, values: dict[str, Any]) -> Message:
    fields = {field.name: getattr(message, field.name) for field in fields_of(type(message))}
    return type(message)(**fields | values)


def _replace(message: Message, path: Sequence[str], array: list[Any]) -> Message:
    """Return a request whose array has other elements."""
    name, *rest = path
    if not rest:
        return _changed(message, {name: array})
    value = getattr(message, name)
    if isinstance(value, list):
        return _changed(message, {name: [_replace(value[0], rest, array), *value[1:]]})
    return _changed(message, {name: _replace(value, rest, array)})


# -- The requests ------------------------------------------------------------------------------------------------------


def _of_use(use: Use, version: int) -> Base:
    def build(session: Session, to: Target) -> Message:
        return use.build(version, in_transaction(session, use, version, to) if use.in_transaction else to)

    return Base(use.label(version), version, build, use.creates, use.loads)


_BASES: dict[str, list[Base]] = {}
for _use in USES:
    if _use.is_answered and not _use.title.startswith("twice"):
        _BASES.setdefault(_use.api, []).extend(_of_use(_use, version) for version in _use.forms())

Build = Callable[[Session, int, Target], Message]


def base(api: str, *versions: int, title: str = "", creates: bool = False) -> Callable[[Build], Build]:
    """Register a request of some versions; by default, of the newest."""

    def register(build: Build) -> Build:
        (key,) = (api_key for api_key, each in API_KEYS.items() if each.name == api)
        for version in versions or (advertised_by(RELEASE)[key][1],):
            label = f"{api} v{version}" + (f" {title}" if title else "")
            made = Base(label, version, lambda session, to, version=version: build(session, version, to), creates)  # type: ignore[misc]  # the default binds the loop's value
            _BASES.setdefault(api, []).append(made)
        return build

    return register


def _scram(to: Target) -> dict[str, Any]:
    credentials = {"name": to.key, "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"x" * 32}
    return {"deletions": [], "upsertions": [credentials]}


_STREAMS_MEMBER: dict[str, Any] = {
    "member_id": MEMBER_ID,
    "member_epoch": 0,
    "rebalance_timeout_ms": 60_000,
    "process_id": "process",
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
}


def _with_pattern(to: Target) -> dict[str, Any]:
    copartitions = {"source_topics": [], "source_topic_regex": [0], "repartition_source_topics": []}
    subtopology = {
        "subtopology_id": "0",
        "source_topics": [to.name],
        "source_topic_regex": ["none-.*"],
        "copartition_groups": [copartitions],
    }
    topology = {"epoch": 0, "subtopologies": [subtopology]}
    return _STREAMS_MEMBER | {"group_id": f"streams-{to.key}", "topology": topology, "client_tags": []}


# Requests that need no other before them: API, versions, title and fields.
_PLAIN: tuple[tuple[str, tuple[int, ...], str, Callable[[Target], dict[str, Any]]], ...] = (
    ("ListGroups", (5,), "", lambda _: {"states_filter": ["Assigning"], "types_filter": ["classic"]}),
    ("FindCoordinator", (4, 6), "of groups", lambda to: {"key_type": 0, "coordinator_keys": [to.key]}),
    ("ConsumerGroupDescribe", (), "", lambda to: {"group_ids": [f"missing-{to.key}"]}),
    ("ShareGroupDescribe", (), "", lambda to: {"group_ids": [f"missing-{to.key}"]}),
    ("StreamsGroupDescribe", (), "", lambda to: {"group_ids": [f"missing-{to.key}"]}),
    ("ListTransactions", (0, 2), "", lambda _: {"state_filters": ["Dead"], "producer_id_filters": [1_000_000]}),
    ("CreatePartitions", (0, 3), "with assignments", lambda to: {
        "topics": [{"name": to.name, "count": _PARTITIONS + 1, "assignments": [{"broker_ids": [1]}]}],
        "timeout_ms": TIMEOUT_MS,
    }),
    ("DescribeConfigs", (), "of the broker", lambda _: {
        "resources": [{"resource_type": 4, "resource_name": "1", "configuration_keys": ["num.partitions"]}],
    }),
    ("ListConfigResources", (1,), "", lambda _: {"resource_types": [4]}),
    ("DescribeClientQuotas", (), "", lambda to: {
        "components": [{"entity_type": "client-id", "match_type": 0, "match": to.key}], "strict": True,
    }),
    ("AlterClientQuotas", (), "of a client", lambda to: {
        "entries": [{
            "entity": [{"entity_type": "client-id", "entity_name": to.key}],
            "ops": [{"key": "producer_byte_rate", "value": 1e6}],
        }],
    }),
    ("AlterUserScramCredentials", (), "that creates", _scram),
    ("DescribeUserScramCredentials", (), "", lambda to: {"users": [{"name": to.key}]}),
    ("UpdateFeatures", (0, 2), "", lambda _: {
        "timeout_ms": TIMEOUT_MS,
        "feature_updates": [{"feature": "group.version", "max_version_level": 1, "upgrade_type": 1}],
    }),
    ("StreamsGroupHeartbeat", (1,), "with a pattern", _with_pattern),
)  # fmt: skip


def _build_plain(_session: Session, _version: int, to: Target, *, api: str, fields: Any) -> Message:
    return request(api, **fields(to))


for _api, _versions, _title, _fields in _PLAIN:
    base(_api, *_versions, title=_title)(partial(_build_plain, api=_api, fields=_fields))


@base("CreateTopics", 2, 5, 7, title="with configs", creates=True)
def create_configured_topics(_session: Session, _version: int, to: Target) -> Message:
    configs = [{"name": "file.delete.delay.ms", "value": "60001"}]
    topic = {"name": to.name, "num_partitions": 1, "replication_factor": 1, "configs": configs}
    return create_topics(topic)


def _join(to: Target, member_id: str = "") -> Message:
    protocols = [{"name": "range", "metadata": b"first"}, {"name": "roundrobin", "metadata": b"last"}]
    return request(
        "JoinGroup",
        group_id=f"joined-{to.key}",
        member_id=member_id,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=1_000,
        protocol_type="consumer",
        protocols=protocols,
    )


def _used(session: Session, api: str, title: str, version: int, to: Target) -> Any:
    """Send a request of tests.support.topic_requests."""
    (use,) = (use for use in USES if use.api == api and use.title == title)
    return session.request(use.build(version, to), version)


def _joined(session: Session, to: Target) -> Any:
    return session.request(_join(to), 3)


@base("JoinGroup", 0, 3, 5, 9)
def join_group(session: Session, version: int, to: Target) -> Message:
    known = session.request(_join(to), version).member_id if version > 3 else ""
    return _join(to, known)


@base("JoinGroup", title="with one protocol")
def join_group__one(session: Session, version: int, to: Target) -> Message:
    joining = join_group(session, version, to)
    return _changed(joining, {"protocols": joining.protocols[:1]})  # type: ignore[attr-defined]  # a JoinGroup


@base("SyncGroup", 0, 3, 5)
def sync_group(session: Session, _version: int, to: Target) -> Message:
    joined = _joined(session, to)
    return request(
        "SyncGroup",
        group_id=f"joined-{to.key}",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": joined.member_id, "assignment": b"first"}],
    )


@base("LeaveGroup", 3, 4, 5)
def leave_group(session: Session, _version: int, to: Target) -> Message:
    members = [{"member_id": _joined(session, to).member_id}]
    return request("LeaveGroup", group_id=f"joined-{to.key}", members=members)


@base("LeaveGroup", 5, title="of a static member")
def leave_group__static(session: Session, _version: int, to: Target) -> Message:
    joining = _changed(_join(to), {"group_instance_id": "static"})
    session.request(joining, 5)
    return request(
        "LeaveGroup", group_id=f"joined-{to.key}", members=[{"member_id": "", "group_instance_id": "static"}]
    )


@base("DescribeGroups", 0, 5, 6)
def describe_groups(session: Session, _version: int, to: Target) -> Message:
    _joined(session, to)
    return request("DescribeGroups", groups=[f"joined-{to.key}"])


@base("DeleteGroups", 0, 2, 3)
def delete_groups(session: Session, _version: int, to: Target) -> Message:
    members = [{"member_id": _joined(session, to).member_id}]
    session.request(request("LeaveGroup", group_id=f"joined-{to.key}", members=members), 5)
    return request("DeleteGroups", groups_names=[f"joined-{to.key}"])


@base("OffsetFetch", 8, 9, 10, title="of groups with all topics")
def offset_fetch(session: Session, _version: int, to: Target) -> Message:
    group_id = f"offsets-{to.key}"
    topic = {"name": to.name, "partitions": [{"partition_index": 0, "committed_offset": 3}]}
    session.request(request("OffsetCommit", group_id=group_id, topics=[topic]), 9)
    return request("OffsetFetch", groups=[{"group_id": group_id, "topics": None}])


@base("ConsumerGroupDescribe", title="of a group")
def consumer_group_describe(session: Session, _version: int, to: Target) -> Message:
    _used(session, "ConsumerGroupHeartbeat", "with a subscription", 1, to)
    return request("ConsumerGroupDescribe", group_ids=[f"consumer-1-{to.key}"])


@base("DescribeTransactions")
def describe_transactions(session: Session, _version: int, to: Target) -> Message:
    session.request(request("InitProducerId", transactional_id=to.key, transaction_timeout_ms=60_000), 4)
    return request("DescribeTransactions", transactional_ids=[to.key])


def _fetch(session: Session, version: int, to: Target, **fields: Any) -> Message:
    """Open a session, and return its next request."""
    partitions = [{"partition": index, "partition_max_bytes": 1 << 20} for index in range(_PARTITIONS)]
    topics = [{"topic": to.name, "topic_id": to.topic_id, "partitions": partitions}]
    common = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20}
    opened = session.request(request("Fetch", session_epoch=0, topics=topics, **common), version)
    return request("Fetch", session_id=opened.session_id, session_epoch=1, **fields or {"topics": topics}, **common)


@base("Fetch", 7, 12, 13, 18, title="that forgets")
def fetch__forget(session: Session, version: int, to: Target) -> Message:
    forgotten = [{"topic": to.name, "topic_id": to.topic_id, "partitions": [1]}]
    return _fetch(session, version, to, forgotten_topics_data=forgotten)


base("Fetch", 7, 12, 13, 18, title="in a session")(_fetch)


@base("AlterUserScramCredentials", title="that deletes")
def alter_user_scram_credentials__delete(session: Session, _version: int, to: Target) -> Message:
    session.request(request("AlterUserScramCredentials", **_scram(to)), 0)
    return request("AlterUserScramCredentials", deletions=[{"name": to.key, "mechanism": 1}], upsertions=[])


@base("ConsumerGroupHeartbeat", title="with owned partitions after it has joined")
def consumer_group_heartbeat(session: Session, version: int, to: Target) -> Message:
    joined = _used(session, "ConsumerGroupHeartbeat", "with a subscription", version, to)
    return request(
        "ConsumerGroupHeartbeat",
        group_id=f"consumer-{version}-{to.key}",
        member_id=joined.member_id,
        member_epoch=joined.member_epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[to.name],
        topic_partitions=[{"topic_id": to.topic_id, "partitions": [0]}],
    )


@base("StreamsGroupHeartbeat", 0, 1, title="of all that a topology has")
def streams_group_heartbeat(session: Session, _version: int, to: Target) -> Message:
    _targets(session, [f"{to.name}-repartition"], creates=False)  # a status names missing topics in any order
    config = [{"key": "cleanup.policy", "value": "compact"}]
    changelog = {"name": f"{to.name}-changelog", "replication_factor": 1, "topic_configs": config}
    repartition = {"name": f"{to.name}-repartition", "partitions": 2, "replication_factor": 1, "topic_configs": config}
    return request(
        "StreamsGroupHeartbeat",
        **_STREAMS_MEMBER,
        group_id=f"streams-{to.key}",
        topology={
            "epoch": 0,
            "subtopologies": [
                {
                    "subtopology_id": "0",
                    "source_topics": [to.name],
                    "state_changelog_topics": [changelog],
                    "repartition_sink_topics": [f"{to.name}-repartition"],
                    "repartition_source_topics": [repartition],
                    "copartition_groups": [
                        {"source_topics": [0], "source_topic_regex": [], "repartition_source_topics": [0]}
                    ],
                }
            ],
        },
        client_tags=[{"key": "zone", "value": "a"}],
    )


@base("StreamsGroupHeartbeat", 0, 1, title="of a member with tasks")
def streams_group_heartbeat__tasks(session: Session, version: int, to: Target) -> Message:
    _used(session, "StreamsGroupHeartbeat", "of a source", version, to)
    tasks = [{"subtopology_id": "0", "partitions": [0]}]
    return request(
        "StreamsGroupHeartbeat",
        group_id=f"streams-source-{version}-{to.key}",
        member_id=MEMBER_ID,
        member_epoch=1,
        active_tasks=tasks,
        standby_tasks=tasks,
        warmup_tasks=tasks,
        task_offsets=[{"subtopology_id": "0", "partition": 0, "offset": 0}],
        task_end_offsets=[{"subtopology_id": "0", "partition": 0, "offset": 0}],
    )


@base("StreamsGroupTopologyDescriptionUpdate", title="of a group")
def streams_group_topology_description_update(session: Session, _version: int, to: Target) -> Message:
    _used(session, "StreamsGroupHeartbeat", "of a source", 1, to)
    node = {
        "name": "node",
        "source_topics": [to.name],
        "sink_topic": to.name,
        "stores": ["store"],
        "successors": ["node"],
    }
    return request(
        "StreamsGroupTopologyDescriptionUpdate",
        group_id=f"streams-source-1-{to.key}",
        member_id=MEMBER_ID,
        topology_epoch=0,
        topology_description={
            "subtopologies": [{"subtopology_id": "0", "nodes": [node]}],
            "global_stores": [{"source": node, "processor": node}],
        },
    )


# -- The cases ---------------------------------------------------------------------------------------------------------


def repeat_elements(session: Session, *, api: str) -> None:
    make_coordinators_ready(session)
    other, _ = _targets(session, [f"{_OTHER}-{api}", SOURCE], creates=False)
    for one in _BASES[api]:
        rows = [
            (path, title)
            for path, array in arrays(one.build(session, other._replace(key=f"rows-{one.label}")), one.version)
            for title, _ in repetitions(array[0], other, other._replace(name="x"))
            # The state of a share partition loads with its first fetch; what others get then depends on the time.
            if not (one.loads and title == "in parts")
        ]
        names = [f"{api}-{_BASES[api].index(one)}-{number}" for number in range(len(rows))]
        for (path, title), to in zip(rows, _targets(session, names, creates=one.creates), strict=True):
            _send(session, one, path, title, to, other)


def _send(session: Session, one: Base, path: str, title: str, to: Target, other: Target) -> None:
    usual = one.build(session, to)
    array = dict(arrays(usual, one.version))[path]
    elements = dict(repetitions(array[0], to, other))[title]
    repeated = _replace(usual, path.split("."), [*elements, *array[1:]])
    if one.loads:
        session.request(repeated, one.version)
    label = f"{one.label}: {path} {title}"
    response = session.request(repeated, one.version, within_s=_WITHIN_S.get(one.api, ANSWERED_WITHIN_S))
    # The order is that of a Java hash map, or random, where it is not that of the request (orders.py).
    masked = session.masked(response, ids=(to.topic_id, other.topic_id), unordered=["*"])
    session.note(label, plain(masked, to))
    if one.is_forwarded:  # the broker knows the results when it knows of a topic that is created later
        session.create_topic(f"after-{to.name}")
    if not one.creates:
        session.note(f"{label}, then", _state(session, to))


def _targets(session: Session, names: list[str], *, creates: bool) -> list[Target]:
    """Return new topics with a record each, or the names of topics that do not exist."""
    ids = dict.fromkeys(names, UNKNOWN_ID)
    if not creates:
        topics = ({"name": name, "num_partitions": _PARTITIONS, "replication_factor": 1} for name in names)
        response = session.request(create_topics(*topics), 7)
        ids = {topic.name: topic.topic_id for topic in response.topics}
        _wait_for_leaders(session, names)
        data = [{"name": name, "partition_data": [{"index": 0, "records": batch(b"v")}]} for name in names]
        session.request(request("Produce", acks=-1, timeout_ms=TIMEOUT_MS, topic_data=data), 9)
    return [Target(name, ids[name], f"of-{name}") for name in names]


def _wait_for_leaders(session: Session, names: list[str]) -> None:
    """Wait until the broker leads all partitions, which is later than that it knows of them."""
    last = [{"partition_index": index, "timestamp": -1} for index in range(_PARTITIONS)]
    session.wait_for(
        request("ListOffsets", replica_id=-1, topics=[{"name": name, "partitions": last} for name in names]),
        lambda response: not any(one.error_code for topic in response.topics for one in topic.partitions),
        7,
    )


def _state(session: Session, to: Target) -> list[Any]:
    """Return the number of partitions of a topic, the end offset of its first one, and the offset of its group."""
    partitions = len(session.request(metadata(to.name), 12).topics[0].partitions)
    listed = session.request(list_offsets(to.name, -1, timeout_ms=0), 7)
    fetched = session.request(old_offsets(f"offsets-{to.key}", to.name, range(_PARTITIONS)), 7)
    return [
        partitions,
        listed.topics[0].partitions[0].offset,
        [one.committed_offset for topic in fetched.topics for one in topic.partitions],
    ]


for _api in _BASES:
    case(_LAYOUT, row=_api)(partial(repeat_elements, api=_api))

"""The table of scenarios for all clients and any broker, with the expected steps.

A scenario is a list of calls of verbs (driver.py), each with its expected steps. Each scenario gets an empty topic, a
group id and a transactional id.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from tests.clients.driver import Given, Round, Row, Step


class Call(NamedTuple):
    """One verb, and its expected steps."""

    verb: str
    given: Given
    steps: Sequence[Step]


class Scenario(NamedTuple):
    """One use of a client: one row of the table."""

    title: str
    calls: Sequence[Call]
    topics: Mapping[str, int] = {"topic": 1}  # fields of `Given` with existing topics, and their partition counts
    configs: Mapping[str, str] = {}  # of these topics
    group_configs: Mapping[str, str] = {}
    codec: int | None = None  # expected codec in the attributes of the stored batches


# In the past, with gaps, and not in order: a client or broker that generates timestamps cannot produce these.
START_MS = 1_600_000_000_000


def plain(*values: str) -> list[Row]:
    """Return rows with these values and no keys or headers."""
    return [Row(None, value.encode(), [], START_MS + number) for number, value in enumerate(values)]


SOME = plain("a", "b", "c")
COMPRESSIBLE = [Row(b"many", b"%d " % number * 500, [("n", b"%d" % number)], START_MS + number) for number in range(50)]
HEADERS = [
    Row(b"k", b"two of a name", [("header", b"\x00\xff"), ("header", b"again")], START_MS),
    Row(b"k", b"empty", [("empty", b"")], START_MS),
    Row(b"k", "значение 🦜".encode(), [("ünïcödé", b"h")], START_MS),
]
NULLS = [
    Row(None, b"no key", [], START_MS),
    Row(b"tombstone", None, [], START_MS),
    Row(b"", b"", [], START_MS),
]
TIMESTAMPS = [Row(b"k", b"v", [], ms) for ms in (START_MS, START_MS + 777, START_MS - 100_000_000_000, 1, START_MS + 1)]
MANY = [Row(None, b"%d" % number, [], START_MS + number) for number in range(50_000)]
LATEST_IN_THE_MIDDLE = [Row(None, b"v", [], START_MS + ms) for ms in (0, 1_000, 5_000, 2_000, 2_000)]

COMMITTED, ABORTED = plain("c1", "c2"), plain("a1", "a2", "a3")
LATER = plain("later")

# A record in each partition, so that every polled consumer receives some.
FILLED = Call("produce", Given(partitions=4, rows=plain(*"0123")), [{"sent": 4}])
TEN = Call("produce", Given(rows=plain(*"0123456789")), [{"sent": 10}])


def round_trip(rows: list[Row], given: Given | None = None) -> list[Call]:
    """Produce these rows and read them back."""
    given = given or Given()
    wanted = Given(rows=rows, acks=given.acks, compression=given.compression, idempotent=given.idempotent)
    return [Call("produce", wanted, [{"sent": len(rows)}]), Call("read", Given(count=len(rows)), [{"rows": rows}])]


def alone(verb: str, steps: Sequence[Step], given: Given | None = None) -> list[Call]:
    """Return a scenario of one call."""
    return [Call(verb, given or Given(), steps)]


def grouped(verb: str, steps: Sequence[Step], given: Given | None = None) -> list[Call]:
    """Return a scenario of one call about a group, with records in its topic."""
    return [TEN, *alone(verb, steps, given)]


def shared(protocol: str, assignor: str) -> list[Call]:
    """Add and remove a second member of a group that reads four partitions."""
    steps: list[Step] = [
        {"members": 1, "partitions": [4]},
        {"members": 2, "partitions": [2, 2]},
        {"members": 1, "partitions": [4]},
    ]
    return [FILLED, Call("rebalance", of_group(protocol, assignor), steps)]


def of_group(protocol: str, assignor: str = "range") -> Given:
    """Return a group of this protocol that reads four partitions."""
    return Given(partitions=4, protocol="consumer" if protocol == "consumer" else "classic", assignor=assignor)


def static(protocol: str) -> list[Call]:
    """Restart one of two static members."""
    steps: list[Step] = [{"partitions": [2, 2], "kept": True, "revocations_of_the_other": 0}]
    return [FILLED, Call("static", of_group(protocol), steps)]


def delivered(times: int, given: Given) -> list[Call]:
    """Deliver ten records to a share group, each so often."""
    steps: list[Step] = [{"deliveries": dict.fromkeys("0123456789", times)}]
    return [TEN, Call("share", structs.replace(given, count=10 * times), steps)]


FROM_START = {"share.auto.offset.reset": "earliest"}

# One of each kind of quota entity.
QUOTAS: Sequence[tuple[dict[str, str | None], str]] = (
    ({"client-id": "a client"}, "producer_byte_rate"),
    ({"client-id": None}, "consumer_byte_rate"),
    ({"user": "üser"}, "request_percentage"),
    ({"user": None}, "controller_mutation_rate"),
    ({"user": "üser", "client-id": "a client"}, "producer_byte_rate"),
    ({"user": "üser", "client-id": None}, "consumer_byte_rate"),
    ({"user": None, "client-id": "a client"}, "request_percentage"),
    ({"user": None, "client-id": None}, "controller_mutation_rate"),
    ({"ip": "192.0.2.1"}, "connection_creation_rate"),
    ({"ip": None}, "connection_creation_rate"),
)
QUOTA_SET_AND_REMOVED: list[Step] = [{"rate": 1e6}, {"rate": None}]

RESUMED: list[Step] = [{"first": list("01234")}, {"resumed": list("56789")}]
FOUR = {"topic": 4}

SCENARIOS: Mapping[str, Scenario] = {
    # -- records
    "acks-0": Scenario("produce with acks=0", round_trip(SOME, Given(acks="0"))),
    "acks-1": Scenario("produce with acks=1", round_trip(SOME, Given(acks="1"))),
    "acks-all": Scenario("produce with acks=all", round_trip(SOME, Given(acks="all"))),
    **{
        f"compression-{compression}": Scenario(
            f"compression {compression}", round_trip(COMPRESSIBLE, Given(compression=compression)), codec=codec
        )
        for codec, compression in enumerate(("none", "gzip", "snappy", "lz4", "zstd"))
    },
    "headers": Scenario("headers", round_trip(HEADERS)),
    "null-header": Scenario("header without a value", round_trip([Row(b"k", b"v", [("null", None)], START_MS)])),
    "nulls": Scenario("null and empty keys and values", round_trip(NULLS)),
    "null-record": Scenario("record without key and value", round_trip([Row(None, None, [], START_MS)])),
    "timestamps": Scenario("timestamps set by the application", round_trip(TIMESTAMPS)),
    "50000-records": Scenario("50,000 records in order", round_trip(MANY)),
    "auto-create": Scenario("a missing topic is created on request", round_trip(SOME), topics={}),
    "oversize-record": Scenario(
        "record above max.message.bytes is rejected",
        alone("oversize", [{"error": 10}], Given(size=50_000)),
        configs={"max.message.bytes": "10000"},
    ),
    # -- idempotence and transactions
    "idempotence": Scenario("idempotent producer", round_trip(COMPRESSIBLE, Given(idempotent=True))),
    "transactions": Scenario(
        "transactions, read committed and uncommitted",
        [
            Call(
                "transactions",
                Given(rounds=[Round(COMMITTED, "commit"), Round(ABORTED, "abort"), Round(LATER, "commit")]),
                [{"end": "commit"}, {"end": "abort"}, {"end": "commit"}],
            ),
            Call("read", Given(count=3, isolation="read_committed"), [{"rows": COMMITTED + LATER}]),
            Call("read", Given(count=6, isolation="read_uncommitted"), [{"rows": COMMITTED + ABORTED + LATER}]),
        ],
    ),
    "fencing": Scenario(
        "a second producer with the same transactional id fences the first", alone("fence", [{"fenced": True}])
    ),
    "offsets-in-transactions": Scenario(
        "offsets committed and aborted in transactions",
        [TEN, Call("transactional_offsets", Given(), [{"after_commit": 3}, {"after_abort": 3}])],
        topics={"topic": 1, "output": 1},
    ),
    # -- groups
    "group-classic": Scenario("group, classic protocol: join and leave", shared("classic", "range"), topics=FOUR),
    "group-cooperative": Scenario(
        "group, cooperative assignor: join and leave", shared("classic", "cooperative-sticky"), topics=FOUR
    ),
    "group-consumer": Scenario(
        "group, consumer protocol (KIP-848): join and leave", shared("consumer", "uniform"), topics=FOUR
    ),
    "static-classic": Scenario("static member restarts, classic", static("classic"), topics=FOUR),
    "static-consumer": Scenario("static member restarts, KIP-848", static("consumer"), topics=FOUR),
    "resume-classic": Scenario("commit and resume, classic", [TEN, Call("resume", Given(), RESUMED)]),
    "resume-consumer": Scenario(
        "commit and resume, KIP-848", [TEN, Call("resume", Given(protocol="consumer"), RESUMED)]
    ),
    # -- share groups
    "share-accept": Scenario("records of a share group accepted", delivered(1, Given()), group_configs=FROM_START),
    "share-release": Scenario(
        "records released once, and delivered again",
        delivered(2, Given(acknowledge="release")),
        group_configs=FROM_START,
    ),
    "share-limit": Scenario(
        "records always released, up to the delivery count limit",
        delivered(2, Given(acknowledge="release-always")),
        group_configs={**FROM_START, "share.delivery.count.limit": "2"},
    ),
    "share-reject": Scenario(
        "records rejected, and not delivered to a later member",
        [
            *delivered(1, Given(acknowledge="reject")),
            Call("produce", Given(rows=LATER), [{"sent": 1}]),
            Call("share", Given(count=1), [{"deliveries": {"later": 1}}]),
        ],
        group_configs=FROM_START,
    ),
    "share-members": Scenario(
        "two members share a partition", delivered(1, Given(members=2)), group_configs=FROM_START
    ),
    # -- admin: topics, configs, records
    "topics": Scenario(
        "create, list, describe, delete topics",
        alone(
            "topics",
            [
                {"created": 0},
                {"created again": 36},
                {"listed": True},
                {"partitions": 3},
                {"deleted": 0},
                {"listed": False},
                {"deleted again": 3},
            ],
            Given(partitions=3),
        ),
        topics={},
    ),
    "create-partitions": Scenario(
        "create partitions",
        alone("create_partitions", [{"error": 0}, {"partitions": 3}, {"error": 37}], Given(partitions=3)),
    ),
    "topic-configs": Scenario(
        "describe configs of a topic",
        alone("topic_configs", [{"retention.ms": "1234", "cleanup.policy": "delete"}]),
        configs={"retention.ms": "1234"},
    ),
    "broker-configs": Scenario(
        "describe configs of a broker", alone("broker_configs", [{"message.max.bytes": "1048588"}])
    ),
    "incremental-alter-configs": Scenario(
        "alter configs with IncrementalAlterConfigs",
        alone(
            "incremental_alter_configs",
            [
                {"retention.ms": "5000", "retention.bytes": "777"},
                {"retention.ms": "604800000", "retention.bytes": "777"},
            ],
        ),
        configs={"retention.bytes": "777"},
    ),
    "alter-configs": Scenario(
        "alter configs with AlterConfigs (legacy)", alone("alter_configs", [{"retention.ms": "5000"}])
    ),
    "delete-records": Scenario(
        "delete records", [TEN, Call("delete_records", Given(count=4), [{"low_watermark": 4}, {"earliest": 4}])]
    ),
    "list-offsets": Scenario(
        "offsets: earliest, latest, by timestamp",
        [
            Call("produce", Given(rows=LATEST_IN_THE_MIDDLE), [{"sent": 5}]),
            Call("list_offsets", Given(count=START_MS + 1_001), [{"earliest": 0, "latest": 5, "by_timestamp": 2}]),
        ],
    ),
    "max-timestamp": Scenario(
        "offset of the latest timestamp",
        [
            Call("produce", Given(rows=LATEST_IN_THE_MIDDLE), [{"sent": 5}]),
            Call("max_timestamp", Given(), [{"offset": 2, "timestamp": START_MS + 5_000}]),
        ],
    ),
    # -- admin: groups
    "list-groups": Scenario("list groups", grouped("list_groups", [{"listed": True}])),
    "describe-groups": Scenario(
        "describe a classic group",
        grouped("describe_group", [{"state": "Stable", "members": 1}, {"state": "Empty", "members": 0}]),
    ),
    "describe-consumer-groups": Scenario(
        "describe a KIP-848 group",
        grouped(
            "describe_group",
            [{"state": "Stable", "members": 1}, {"state": "Empty", "members": 0}],
            Given(protocol="consumer"),
        ),
    ),
    "delete-groups": Scenario(
        "delete a group", grouped("delete_group", [{"with a member": 68}, {"empty": 0}, {"deleted": 69}])
    ),
    "list-group-offsets": Scenario("list offsets of a group", grouped("list_group_offsets", [{"offset": 3}])),
    "alter-group-offsets": Scenario("alter offsets of a group", grouped("alter_group_offsets", [{"offset": 7}])),
    "delete-group-offsets": Scenario(
        "delete offsets of a group", grouped("delete_group_offsets", [{"error": 0}, {"left": 0}])
    ),
    # -- admin: the rest
    "cluster": Scenario("describe the cluster", alone("cluster", [{"controller": True, "id": True}])),
    "client-quotas": Scenario(
        "alter and describe client quotas",
        [Call("client_quotas", Given(entity=entity, key=key), QUOTA_SET_AND_REMOVED) for entity, key in QUOTAS],
    ),
    "list-transactions": Scenario("list transactions", alone("list_transactions", [{"state": "Ongoing"}])),
    "describe-transactions": Scenario(
        "describe a transaction", alone("describe_transaction", [{"state": "Ongoing", "partitions": 1}])
    ),
    "describe-producers": Scenario(
        "describe producers of a partition", alone("describe_producers", [{"producers": 1}])
    ),
    "log-dirs": Scenario("describe log directories", alone("log_dirs", [{"partitions": 1}])),
}

CLASSIC_ONLY = dict.fromkeys(
    ("group-consumer", "static-consumer", "resume-consumer", "describe-consumer-groups"),
    "has only the classic protocol",
)
_LISTS_OF_TRANSACTIONS = ("list-transactions", "describe-transactions", "describe-producers")


def without_admin_calls(*scenarios: str) -> dict[str, str]:
    """Return the reasons for skipping these scenarios, and those that list transactions."""
    return dict.fromkeys((*scenarios, *_LISTS_OF_TRANSACTIONS), "has no such call in its admin client")


WITHOUT_SHARE_CONSUMER = {
    name: "has no share consumer"
    for name, scenario in SCENARIOS.items()
    if any(call.verb == "share" for call in scenario.calls)
}

# The areas of the short table in the README, by the first scenario of each.
AREAS = {
    "acks-0": "records",
    "idempotence": "idempotence, transactions",
    "group-classic": "groups",
    "share-accept": "share groups",
    "topics": "admin: topics, configs, records",
    "list-groups": "admin: groups and their offsets",
    "cluster": "admin: cluster, quotas, transactions",
}

# -- APIs that a scenario needs ----------------------------------------------------------------------------------------

_CLASSIC = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch")
_KIP_848 = ("ConsumerGroupHeartbeat", "OffsetCommit", "OffsetFetch")
_TRANSACTIONS = ("InitProducerId", "AddPartitionsToTxn", "EndTxn")
_OF_GROUPS = (
    *("rebalance", "static", "resume", "list_groups", "describe_group", "delete_group"),
    *("list_group_offsets", "alter_group_offsets", "delete_group_offsets"),
)
_OF_TRANSACTIONS = ("transactions", "fence", "list_transactions", "describe_transaction", "describe_producers")
_NEEDS: Mapping[str, Sequence[str]] = {
    "alter_configs": ("AlterConfigs",),
    "client_quotas": ("AlterClientQuotas", "DescribeClientQuotas"),
    "create_partitions": ("CreatePartitions",),
    "delete_group": ("DeleteGroups",),
    "delete_group_offsets": ("OffsetDelete",),
    "delete_records": ("DeleteRecords",),
    "describe_producers": ("DescribeProducers",),
    "describe_transaction": ("DescribeTransactions",),
    "incremental_alter_configs": ("IncrementalAlterConfigs",),
    "list_groups": ("ListGroups",),
    "list_transactions": ("ListTransactions",),
    "log_dirs": ("DescribeLogDirs",),
    "share": ("ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"),
    "transactional_offsets": (*_CLASSIC, *_TRANSACTIONS, "AddOffsetsToTxn", "TxnOffsetCommit"),
}


def needs(scenario: Scenario) -> set[str]:
    """Return the APIs that every client needs for it, beyond those for records, topics and the cluster."""
    found: set[str] = {"IncrementalAlterConfigs"} if scenario.group_configs else set()
    for verb, given, _ in scenario.calls:
        found.update(_NEEDS.get(verb, ()))
        if verb in _OF_TRANSACTIONS:
            found.update(_TRANSACTIONS)
        if verb in _OF_GROUPS:
            found.update(_KIP_848 if given.protocol == "consumer" else _CLASSIC)
        if verb == "describe_group":
            found.add("ConsumerGroupDescribe" if given.protocol == "consumer" else "DescribeGroups")
    return found

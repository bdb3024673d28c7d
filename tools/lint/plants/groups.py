"""Plants of the rules in sluice/lint/rules/groups."""

from collections.abc import Mapping, Sequence
from random import Random

from tools.lint.job import Settings
from tools.lint.plant import DOTTED, PYTHON, Cell, Plant, anyhow, consuming, setting, value_of
from tools.lint.scene import Fault, Scene

_SHORT_SESSIONS: dict[str, str | float] = {"group.min.session.timeout.ms": 1000}

_SESSION = setting(
    "session.timeout.ms",
    franz_go="SessionTimeout",
    sarama="Consumer.Group.Session.Timeout",
    kafkajs="consumer.sessionTimeout",
)
_HEARTBEAT = setting(
    "heartbeat.interval.ms",
    franz_go="HeartbeatInterval",
    sarama="Consumer.Group.Heartbeat.Interval",
    kafkajs="consumer.heartbeatInterval",
)
_POLL = setting("max.poll.interval.ms")
_ALL = tuple(_SESSION)
# kafkajs has no static members.
_STATIC = (*PYTHON, *DOTTED, "franz-go", "sarama")


def _sessions(
    planted_ms: int, remedied_ms: int, heartbeat_ms: int, clients: Sequence[str] = _ALL
) -> Mapping[str, Cell]:
    """Return cells with these session timeouts, and a heartbeat interval that fits to both."""
    return {
        each: Cell(
            value_of(each, _SESSION, planted_ms) | value_of(each, _HEARTBEAT, heartbeat_ms),
            value_of(each, _SESSION, remedied_ms) | value_of(each, _HEARTBEAT, heartbeat_ms),
        )
        for each in clients
    }


def _assignor(name: str) -> Settings:
    return {"partition_assignment_strategy": [name]}


_JAVA_COOPERATIVE: Settings = {
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
}


def _quiet(random: Random) -> Scene:
    return Scene(jobs=[consuming(random, for_ms=random.randint(10_000, 11_000))], properties=_SHORT_SESSIONS)


def _strict(random: Random) -> Scene:
    return Scene(jobs=[consuming(random)], fails=True)


def _slow(random: Random) -> Scene:
    """Records come all the time, and each poll is followed by work."""
    job = consuming(random, for_ms=random.randint(13_000, 14_000), most=10)
    return Scene(jobs=[job], topics={"orders": 1}, feed_ms=100, properties=_SHORT_SESSIONS, fails=True)


def _congested(random: Random) -> Scene:
    """For some seconds, the network delays each request by longer than the session timeout."""
    slow: Fault = {"client_id": "app", "after": "8s", "during": "5s"}
    slow |= {"action": {"kind": "bandwidth", "in_bytes_per_s": random.randint(20, 30)}}
    return Scene(jobs=[consuming(random, for_ms=17_000)], properties=_SHORT_SESSIONS, faults=[slow], fails=True)


def _long(random: Random) -> Scene:
    job = consuming(random, for_ms=random.randint(34_000, 36_000), most=10)
    return Scene(jobs=[job], topics={"orders": 1}, feed_ms=100, properties=_SHORT_SESSIONS, fails=True)


def _joined_meanwhile(random: Random) -> Scene:
    """Other members join, and leave, while the first one works."""
    first = consuming(random, for_ms=34_000, most=10)
    others = [
        consuming(random, start_ms=5_000 + number * 6_000, for_ms=1_000, client_id="other") for number in range(4)
    ]
    return Scene(jobs=[first, *others], feed_ms=100, properties=_SHORT_SESSIONS, fails=True)


def _twins(random: Random) -> Scene:
    """Two static members, of which the first is the client under test."""
    first = consuming(random, for_ms=14_000, instance_id="pod-1")
    second = consuming(random, start_ms=random.randint(6_000, 7_000), for_ms=8_000, instance_id="pod-2")
    return Scene(jobs=[first, second], fails=True)


def _restarted(random: Random) -> Scene:
    """A static member stops, and starts again some seconds later; another member stays."""
    other = consuming(random, for_ms=22_000, client_id="other")
    first = consuming(random, instance_id="pod-1")
    second = consuming(random, start_ms=random.randint(14_000, 14_500), instance_id="pod-1")
    return Scene(jobs=[first, other, second], properties=_SHORT_SESSIONS)


def _three(random: Random) -> Scene:
    """Two members stay, the others come and go."""
    guests = [consuming(random, start_ms=5_000 + number * 4_000, for_ms=2_000) for number in range(5)]
    stays = [consuming(random, for_ms=30_000) for _ in range(2)]
    return Scene(jobs=[*stays, *guests], topics={"orders": 3})


def _pair(random: Random) -> Scene:
    second = consuming(random, start_ms=random.randint(5_000, 6_000), for_ms=9_000, client_id="other")
    return Scene(jobs=[consuming(random, for_ms=16_000), second], fails=True)


def _few_partitions(random: Random) -> Scene:
    jobs = [consuming(random, for_ms=18_000) for _ in range(2)]
    return Scene(jobs=jobs, topics={"orders": 1})


def _several_topics(random: Random) -> Scene:
    topics = tuple(f"orders-{number}" for number in range(random.randint(4, 6)))
    jobs = [consuming(random, for_ms=18_000, topics=topics) for _ in range(2)]
    return Scene(jobs=jobs, topics=dict.fromkeys(topics, 1))


def _abandoned(random: Random) -> Scene:
    """Two consumers end without a word, another member stays."""
    jobs = [consuming(random, start_ms=number * 500, leave=False) for number in range(2)]
    return Scene(jobs=[*jobs, consuming(random, for_ms=16_000, client_id="other")], properties=_SHORT_SESSIONS)


# kafkajs sends heartbeats between its fetches, which wait for up to 5 s.
_PERIODIC = tuple(each for each in _ALL if each != "kafkajs")
# These leave the group when the application does not poll.
_POLLING = ("kafka-python", "kafka-python-2", "confluent-kafka", "java-4", "java-3.9")


def _polls(planted_ms: int, clients: Sequence[str]) -> Mapping[str, Cell]:
    """Return cells with this maximum between polls, remedied by the default."""
    short = {each: value_of(each, _SESSION, 1_500) | value_of(each, _HEARTBEAT, 400) for each in clients}
    return {each: Cell(short[each] | value_of(each, _POLL, planted_ms), short[each]) for each in clients}


PLANTS: Sequence[Plant] = (
    Plant("heartbeat-interval", _quiet, _sessions(2_700, 6_000, 1_300, _PERIODIC)),
    Plant("session-timeout-short", _quiet, _sessions(3_000, 10_000, 900, _PERIODIC)),
    Plant("session-timeout-rejected", _strict, _sessions(2_000, 10_000, 600)),
    Plant("session-expired", _congested, _sessions(2_000, 10_000, 600, _PERIODIC)),
    Plant(
        "poll-too-late",
        _slow,
        _polls(2_000, _POLLING),
        planted={"process_ms": 2_500},
        also=frozenset({"rebalance-loop"}),
    ),
    Plant("rebalance-loop", _long, _polls(2_000, _POLLING), planted={"process_ms": 2_500}),
    Plant("poll-near-limit", _joined_meanwhile, _polls(5_000, _POLLING), planted={"process_ms": 4_400}),
    Plant("instance-id-twice", _twins, anyhow(*_STATIC), planted={"instance_id": "pod-2"}),
    Plant("static-member-expires", _restarted, _sessions(2_000, 20_000, 600, _STATIC)),
    Plant(
        "assignors-differ",
        _pair,
        {
            "aiokafka": Cell(_assignor("sticky"), _assignor("roundrobin")),
            "kafka-python": Cell(_assignor("sticky"), _assignor("range")),
            "confluent-kafka": Cell(
                {"partition.assignment.strategy": "cooperative-sticky"}, {"partition.assignment.strategy": "range"}
            ),
            "java-4": Cell(
                {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor"},
                {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor"},
            ),
            "franz-go": Cell({"Balancers": "range"}, {"Balancers": "cooperative-sticky"}),
            "sarama": Cell(
                {"Consumer.Group.Rebalance.GroupStrategies": "sticky"},
                {"Consumer.Group.Rebalance.GroupStrategies": "range"},
            ),
        },
    ),
    Plant(
        "uneven-assignment",
        _several_topics,
        {
            "aiokafka": Cell(_assignor("range"), _assignor("roundrobin")),
            "kafka-python": Cell({}, _assignor("roundrobin")),
            "kafka-python-2": Cell({}, _assignor("roundrobin")),
            "confluent-kafka": Cell({}, {"partition.assignment.strategy": "roundrobin"}),
            "java-4": Cell({}, _JAVA_COOPERATIVE),
            "java-3.9": Cell({}, _JAVA_COOPERATIVE),
            "franz-go": Cell({"Balancers": "range"}, {"Balancers": "cooperative-sticky"}),
        },
    ),
    Plant(
        "eager-rebalances",
        _three,
        {
            "confluent-kafka": Cell({}, {"partition.assignment.strategy": "cooperative-sticky"}),
            "java-4": Cell({}, _JAVA_COOPERATIVE),
            "java-3.9": Cell({}, _JAVA_COOPERATIVE),
            "franz-go": Cell({"Balancers": "range"}, {"Balancers": "cooperative-sticky"}),
        },
    ),
    Plant("idle-members", _few_partitions, anyhow(*_ALL), remedied_scene={"topics": {"orders": 2}}),
    Plant(
        "closed-without-leaving",
        _abandoned,
        # aiokafka, in the loop of the brokers, cannot end without a word.
        _sessions(2_000, 2_000, 600, [each for each in _PERIODIC if each != "aiokafka"]),
        remedied={"leave": True},
    ),
)

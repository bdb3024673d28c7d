"""What a scenario file says: a cluster, and what happens to it at which moment. The same in TOML, YAML and JSON.

Pure data, from which the published JSON Schema is made (schema.py): a field's docstring line is its description there.
What the types cannot say, timeline.py and checks.py do.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from sluice.broker.faults.rule import Rule
from sluice.text.typed_decoding import ACCEPTED

from .durations import Duration

# One entity of a quota may be the default of its type: as Kafka's tools show it, since TOML has no null.
DEFAULT_ENTITY = "<default>"
QUOTAS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)

_SMALL = "small letters, digits and hyphens, such as rolling-restart"
_Name = Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description=_SMALL, extra=ACCEPTED)]
_Text = Annotated[str, Meta(min_length=1, description="text of at least one character", extra=ACCEPTED)]
_NodeId = Annotated[int, Meta(ge=0, description="a node id", extra=ACCEPTED)]
_Index = Annotated[int, Meta(ge=0, description="a number from 0 on", extra=ACCEPTED)]
_Count = Annotated[int, Meta(ge=1, description="a number from 1 on", extra=ACCEPTED)]
_Brokers = Annotated[int, Meta(ge=1, le=100, description="a number from 1 to 100", extra=ACCEPTED)]
Property = Annotated[str | int | float | bool, Meta(description="text, a number, true or false", extra=ACCEPTED)]
_Rate = Annotated[str | int | float, Meta(description='a number, or bytes per second such as "2M"', extra=ACCEPTED)]


class MoveLeader(Struct, frozen=True, forbid_unknown_fields=True):
    """Another replica that is in sync leads a partition.

    topic: the partition's topic
    partition: its index
    to: node id of the new leader
    """

    topic: _Text
    to: _NodeId
    partition: _Index = 0


class Elect(Struct, frozen=True, forbid_unknown_fields=True):
    """An election, which changes nothing where none is needed.

    topic: the partition's topic
    partition: its index
    election: preferred, or unclean, which may lose records
    """

    topic: _Text
    partition: _Index = 0
    election: Literal["preferred", "unclean"] = "preferred"


class Entity(Struct, frozen=True, forbid_unknown_fields=True):
    """Whom quotas are of; `<default>` is all of that type who have none of their own.

    user: who authenticated
    client_id: a client id, with or without a user
    ip: an address, without the other two
    """

    user: _Text | UnsetType = UNSET
    client_id: _Text | UnsetType = UNSET
    ip: _Text | UnsetType = UNSET


class Quota(Entity, frozen=True, forbid_unknown_fields=True):
    """Quotas of one entity; others that it has stay. `<default>` is all of that type who have none of their own.

    producer_byte_rate: bytes per second, such as 1000000 or "1M"
    consumer_byte_rate: the same
    request_percentage: of the time of all request handlers
    controller_mutation_rate: partitions created or deleted per second
    connection_creation_rate: connections per second, of an ip
    """

    producer_byte_rate: _Rate | UnsetType = UNSET
    consumer_byte_rate: _Rate | UnsetType = UNSET
    request_percentage: _Rate | UnsetType = UNSET
    controller_mutation_rate: _Rate | UnsetType = UNSET
    connection_creation_rate: _Rate | UnsetType = UNSET


class AlterConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Configs of a topic, of a broker or, where neither is named, of all brokers.

    topic: the topic
    broker: node id of the broker
    set: configs by their names
    remove: names of configs that are to have their defaults again
    """

    topic: _Text | UnsetType = UNSET
    broker: _NodeId | UnsetType = UNSET
    set: dict[str, Property] = {}
    remove: tuple[str, ...] = ()


class CreateTopic(Struct, frozen=True, forbid_unknown_fields=True):
    """A topic.

    name: its name
    partitions: how many; num.partitions, where nothing is said
    replicas: of each partition; default.replication.factor, where nothing is said
    assignments: in place of both, of each partition the brokers that have it, the preferred leader first
    config: the topic's own configs by their names
    """

    name: _Text
    partitions: _Count | UnsetType = UNSET
    replicas: _Count | UnsetType = UNSET
    assignments: tuple[tuple[_NodeId, ...], ...] | UnsetType = UNSET
    config: dict[str, Property] = {}


class Repeat(Struct, frozen=True, forbid_unknown_fields=True):
    """How often a step is done.

    every: from one time to the next
    times: how often in all
    """

    every: Duration
    times: _Count


class Step(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens at a moment: exactly one thing, and when.

    at: when, since the scenario began
    say: a line for the log and the journal
    stop: a broker stops, after it has given up what it leads
    kill: a broker is gone, which nobody was told
    start: a broker that was stopped or killed starts
    isolate: a broker is cut off from the others; clients still reach it
    rejoin: a broker that was cut off is reached again
    move_leader: another replica leads a partition
    elect: an election is held
    quota: quotas are set
    remove_quota: all quotas of an entity are removed
    fault: a fault rule is added
    remove_fault: the fault rule of this id is removed
    alter_config: configs are altered
    create_topic: a topic is created
    during: how long until it is undone: stop, kill, isolate, move_leader, quota, remove_quota, alter_config, fault
    meanwhile: fault rules that are in force while it lasts
    repeat: do it again
    """

    at: Duration
    say: _Text | UnsetType = UNSET
    stop: _NodeId | UnsetType = UNSET
    kill: _NodeId | UnsetType = UNSET
    start: _NodeId | UnsetType = UNSET
    isolate: _NodeId | UnsetType = UNSET
    rejoin: _NodeId | UnsetType = UNSET
    move_leader: MoveLeader | UnsetType = UNSET
    elect: Elect | UnsetType = UNSET
    quota: Quota | UnsetType = UNSET
    remove_quota: Entity | UnsetType = UNSET
    alter_config: AlterConfig | UnsetType = UNSET
    create_topic: CreateTopic | UnsetType = UNSET
    fault: Rule | UnsetType = UNSET
    remove_fault: _Text | UnsetType = UNSET
    during: Duration | UnsetType = UNSET
    meanwhile: tuple[Rule, ...] = ()
    repeat: Repeat | UnsetType = UNSET


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster, and what happens to it.

    name: of small letters, digits and hyphens
    description: what it shows
    loses_records: whether records may be lost that were acknowledged
    brokers: how many there are; their node ids count on from node.id, which is 1 by default
    config: properties that the brokers are started with, by their names
    topics: that are created first
    quotas: that are set first
    faults: fault rules that are in force from the beginning to the end
    seed: makes what is random the same in every run
    duration: how long it takes; until the last step has been done, where nothing is said
    steps: what happens, in any order
    """

    name: _Name
    description: str = ""
    loses_records: bool = False
    brokers: _Brokers = 1
    config: dict[str, Property] = {}
    topics: tuple[CreateTopic, ...] = ()
    quotas: tuple[Quota, ...] = ()
    faults: tuple[Rule, ...] = ()
    seed: _Index | UnsetType = UNSET
    duration: Duration | UnsetType = UNSET
    steps: tuple[Step, ...] = ()


def config_texts(config: Mapping[str, Property]) -> dict[str, str]:
    """Configs as text, as which Kafka takes them."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in config.items()}

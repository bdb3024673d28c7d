"""The content of a scenario file: a cluster, and timed changes of it. The same in TOML, YAML and JSON.

The published JSON Schema (schema.py) is generated from it, with the docstrings' field lines as descriptions.
timeline.py checks what the types cannot express.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from sluice.broker.faults.rule import Rule
from sluice.text.typed_decoding import ACCEPTED

from .durations import Duration

# The default entity of a quota, written as in Kafka's tools, because TOML has no null.
DEFAULT_ENTITY = "<default>"

_SMALL = "lower-case letters, digits and hyphens, such as rolling-restart"
_Name = Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description=_SMALL, extra=ACCEPTED)]
_Text = Annotated[str, Meta(min_length=1, description="text of at least one character", extra=ACCEPTED)]
_NodeId = Annotated[int, Meta(ge=0, description="a node id", extra=ACCEPTED)]
_Index = Annotated[int, Meta(ge=0, description="a number of at least 0", extra=ACCEPTED)]
_Count = Annotated[int, Meta(ge=1, description="a number of at least 1", extra=ACCEPTED)]
_Brokers = Annotated[int, Meta(ge=1, le=100, description="a number from 1 to 100", extra=ACCEPTED)]
Property = Annotated[str | int | float | bool, Meta(description="text, a number, true or false", extra=ACCEPTED)]
_Rate = Annotated[str | int | float, Meta(description='a number, or bytes per second such as "2M"', extra=ACCEPTED)]


class MoveLeader(Struct, frozen=True, forbid_unknown_fields=True):
    """A leadership move to another replica in sync.

    topic: the partition's topic
    partition: its index
    to: node id of the new leader
    """

    topic: _Text
    to: _NodeId
    partition: _Index = 0


class Elect(Struct, frozen=True, forbid_unknown_fields=True):
    """An election, which changes nothing if none is needed.

    topic: the partition's topic
    partition: its index
    election: preferred, or unclean, which may lose records
    """

    topic: _Text
    partition: _Index = 0
    election: Literal["preferred", "unclean"] = "preferred"


class Entity(Struct, frozen=True, forbid_unknown_fields=True):
    """The entity of a quota; `<default>` applies to all entities of that type without their own quota.

    user: authenticated user
    client_id: client id, with or without a user
    ip: IP address, without the other two
    """

    user: _Text | UnsetType = UNSET
    client_id: _Text | UnsetType = UNSET
    ip: _Text | UnsetType = UNSET


class Quota(Entity, frozen=True, forbid_unknown_fields=True):
    """Quotas of one entity, whose other quotas are kept. `<default>` applies to all entities without their own quota.

    producer_byte_rate: bytes per second, such as 1000000 or "1M"
    consumer_byte_rate: bytes per second
    request_percentage: share of the time of all request handlers, in percent
    controller_mutation_rate: partitions created or deleted per second
    connection_creation_rate: connections per second, of an ip
    """

    producer_byte_rate: _Rate | UnsetType = UNSET
    consumer_byte_rate: _Rate | UnsetType = UNSET
    request_percentage: _Rate | UnsetType = UNSET
    controller_mutation_rate: _Rate | UnsetType = UNSET
    connection_creation_rate: _Rate | UnsetType = UNSET


QUOTAS = tuple(name for name in Quota.__struct_fields__ if name not in Entity.__struct_fields__)


class AlterConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A change of the configs of a topic, of a broker or, without either, of all brokers.

    topic: name of the topic
    broker: node id of the broker
    set: new values by config name
    remove: configs to reset to their defaults
    """

    topic: _Text | UnsetType = UNSET
    broker: _NodeId | UnsetType = UNSET
    set: dict[str, Property] = {}
    remove: tuple[str, ...] = ()


class CreateTopic(Struct, frozen=True, forbid_unknown_fields=True):
    """A new topic.

    name: name of the topic
    partitions: number of partitions; default: num.partitions
    replicas: replicas per partition; default: default.replication.factor
    assignments: instead of both, the replicas of each partition, preferred leader first
    config: topic configs by name
    """

    name: _Text
    partitions: _Count | UnsetType = UNSET
    replicas: _Count | UnsetType = UNSET
    assignments: tuple[tuple[_NodeId, ...], ...] | UnsetType = UNSET
    config: dict[str, Property] = {}


class Repeat(Struct, frozen=True, forbid_unknown_fields=True):
    """The repetition of a step.

    every: time between two executions
    times: number of executions
    """

    every: Duration
    times: _Count


class Step(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change at a moment; each step has exactly one.

    at: time since the start of the scenario
    say: logs a message, also in the journal
    stop: stops a broker by a controlled shutdown
    kill: stops a broker without a controlled shutdown
    start: starts a stopped or killed broker
    isolate: isolates a broker from the others; clients still reach it
    rejoin: ends the isolation of a broker
    move_leader: moves the leader of a partition
    elect: runs an election
    quota: sets quotas
    remove_quota: removes all quotas of an entity
    fault: adds a fault rule
    remove_fault: removes the fault rule with this id
    release_fault: releases the requests that the fault rule with this id holds
    alter_config: alters configs
    create_topic: creates a topic
    during: time until the change is undone: stop, kill, isolate, move_leader, quota, remove_quota, alter_config, fault
    meanwhile: fault rules in force for that time
    repeat: repetition of the step
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
    release_fault: _Text | UnsetType = UNSET
    during: Duration | UnsetType = UNSET
    meanwhile: tuple[Rule, ...] = ()
    repeat: Repeat | UnsetType = UNSET


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster with timed changes.

    name: lower-case letters, digits and hyphens
    description: purpose of the scenario
    loses_records: whether acknowledged records may be lost
    brokers: number of brokers; node ids count from node.id, by default 1
    config: properties of the brokers by name
    topics: topics created at the start
    quotas: quotas set at the start
    faults: fault rules in force for the whole scenario
    seed: seed of random choices, which makes runs reproducible
    duration: length of the scenario; default: until the last step
    steps: the changes, in any order
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
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in config.items()}

"""Configs of groups (KIP-848, GroupConfig), stored by group id whether the group exists or not."""

from collections.abc import Mapping

from sluice.config.broker_config import Config
from sluice.config.property_table import NO_EFFECT, PROPERTIES, Property
from sluice.config.setting import DEFAULT_CONFIG, DYNAMIC_GROUP_CONFIG, Setting, Synonym
from sluice.config.value_types import (
    LONG_MAX,
    boolean,
    choice,
    integer,
    listing,
    offset_reset,
    split_list,
    text,
    text_of,
)
from sluice.protocol.errors import ErrorCode

from .resource import ApiError
from .stored_configs import StoredConfigs

_DLQ_TOPIC = "errors.deadletterqueue.topic.name"
_RESET = offset_reset("earliest", "latest")
_ISOLATION = choice("read_committed", "read_uncommitted")
_STREAMS_TAGS, _STREAMS_ASSIGNOR = "streams.rack.aware.assignment.tags", "streams.assignor.name"
_OFFLOAD = "{}.assignor.offload.enable"  # no effect: assignors run at once
_KINDS = ("consumer", "share", "streams")
# In the order in which Kafka validates their ranges.
_ROWS = (
    *(Property(_OFFLOAD.format(kind), boolean(), "true", "Kafka", NO_EFFECT) for kind in _KINDS),
    Property("consumer.heartbeat.interval.ms", integer(1), "5000", "KIP-848", "Heartbeat interval of members, ms."),
    Property("consumer.session.timeout.ms", integer(1), "45000", "KIP-848", "Session timeout of members, ms."),
    Property("consumer.assignment.interval.ms", integer(0), "1000", "KIP-1263", "Time between assignments, ms."),
    Property("share.heartbeat.interval.ms", integer(1), "5000", "KIP-932", "Heartbeat interval of members, ms."),
    Property("share.session.timeout.ms", integer(1), "45000", "KIP-932", "Session timeout of members, ms."),
    Property("share.record.lock.duration.ms", integer(1000), "30000", "KIP-932", "Acquisition time of records, ms."),
    Property("share.delivery.count.limit", integer(2), "5", "KIP-932", "Maximum deliveries of a record."),
    Property("share.partition.max.record.locks", integer(100), "2000", "KIP-932", "Records in flight per partition."),
    Property("share.auto.offset.reset", _RESET, "latest", "KIP-932", "Start offset of new share partitions."),
    Property("share.isolation.level", _ISOLATION, "read_uncommitted", "KIP-932", "Isolation level."),
    Property("share.renew.acknowledge.enable", boolean(), "true", "KIP-1222", "Whether acquisitions can be renewed."),
    Property("share.assignment.interval.ms", integer(0), "1000", "KIP-1263", "Time between assignments, ms."),
    Property(_DLQ_TOPIC, text(), "", "KIP-1191", "Topic for records that were not accepted."),
    Property("errors.deadletterqueue.copy.record.enable", boolean(), "false", "KIP-1191", "Whether to copy records."),
    Property("streams.heartbeat.interval.ms", integer(1), "5000", "KIP-1071", "Heartbeat interval of members, ms."),
    Property("streams.session.timeout.ms", integer(1), "45000", "KIP-1071", "Session timeout of members, ms."),
    Property("streams.num.standby.replicas", integer(0), "0", "KIP-1071", "Standby replicas of each stateful task."),
    Property("streams.initial.rebalance.delay.ms", integer(0), "3000", "KIP-1071", "Delay of assignment, ms."),
    Property("streams.assignment.interval.ms", integer(0), "1000", "KIP-1263", "Time between assignments, ms."),
    Property(_STREAMS_TAGS, listing(), "", "Kafka", "Client tags that members must have."),
    Property(_STREAMS_ASSIGNOR, text(), "sticky", "KIP-1357", "Assignor of tasks."),
    Property("streams.task.offset.interval.ms", integer(1), "60000", "KIP-1071", "Interval of offset reports, ms."),
    Property("streams.num.warmup.replicas", integer(0), "2", "KIP-1071", "Warm-up replicas of tasks."),
    Property("streams.acceptable.recovery.lag", integer(0, LONG_MAX), "10000", "KIP-1071", "Lag for an active task."),
)
# Described only if set, for the group or the broker.
_INTERNAL = frozenset(
    {
        "streams.task.offset.interval.ms",
        "streams.num.warmup.replicas",
        "streams.acceptable.recovery.lag",
        *map(_OFFLOAD.format, _KINDS),
    }
)
# The broker's properties with the least and the greatest value of a config.
_BOUNDS = {
    row.name: tuple(f"group.{kind}.{bound}.{name}" for bound in ("min", "max"))
    for row in _ROWS
    for kind, _, name in (row.name.partition("."),)
    if f"group.{kind}.min.{name}" in PROPERTIES and f"group.{kind}.max.{name}" in PROPERTIES
}
_MAXIMA = {
    "streams.num.standby.replicas": "group.streams.max.standby.replicas",
    "streams.num.warmup.replicas": "group.streams.max.warmup.replicas",
}
_MINIMA = {"streams.task.offset.interval.ms": "group.streams.min.task.offset.interval.ms"}


class GroupConfigs(StoredConfigs):
    """See `ConfigStore`. The coordinator uses `in_force(group_id).integer("consumer.session.timeout.ms")`."""

    rows = {row.name: row for row in _ROWS}  # noqa: RUF012  (a constant table; the base class declares a Mapping)
    source = DYNAMIC_GROUP_CONFIG
    no_name = "Group name must not be empty"
    unknown = (ErrorCode.INVALID_CONFIG, "Unknown group config name: ")

    def __init__(self, config: Config) -> None:
        super().__init__()
        self._config = config

    def validate_name(self, name: str) -> ApiError | None:
        return None if name else ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")

    def validate_values(self, own: Mapping[str, str]) -> ApiError | None:
        problems = (self._problem(key, own[key]) for key in self.rows if key in own)
        problem = next(filter(None, problems), None) or self._session_problem(own)
        if problem is None and own.get(_DLQ_TOPIC, "").startswith("__"):
            problem = f"{_DLQ_TOPIC}: DLQ topic name must not start with '__'"
        return None if problem is None else ApiError(ErrorCode.INVALID_CONFIG, problem)

    def _problem(self, key: str, value: str) -> str | None:
        if key in _BOUNDS:
            least, most = map(self._config.integer, _BOUNDS[key])
            return None if least <= int(value) <= most else f"{key} must be in the range {least} to {most} inclusive."
        if key in _MAXIMA:
            most = self._config.integer(_MAXIMA[key])
            return None if int(value) <= most else f"{key} must be less than or equal to {most}"
        if key in _MINIMA:
            least = self._config.integer(_MINIMA[key])
            return None if int(value) >= least else f"{key} must be greater than or equal to {least}"
        if key == _STREAMS_TAGS:
            tags = split_list(value)
            return None if len(set(tags)) == len(tags) else f"{key} must not contain duplicate tag keys."
        known = self._config.names("group.streams.assignors")
        if key == _STREAMS_ASSIGNOR and value not in known:
            registered = f"Registered assignors are: [{', '.join(known)}]."
            return f"{key} '{value}' is not a registered task assignor. {registered}"
        return None

    def _session_problem(self, own: Mapping[str, str]) -> str | None:
        for kind in _KINDS:
            session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
            timeouts = [int(own.get(key, self.default(self.rows[key]))) for key in (session, heartbeat)]
            if (session in own or heartbeat in own) and timeouts[0] <= timeouts[1]:
                return f"{session} must be greater than {heartbeat}"
        return None

    def describe(self, name: str) -> list[Setting] | ApiError:
        settings = super().describe(name)
        if isinstance(settings, ApiError):
            return settings
        return [one for one in settings if one.property.name not in _INTERNAL or one.source != DEFAULT_CONFIG]

    def default(self, row: Property) -> str:
        if row.name == _STREAMS_ASSIGNOR:
            return self._config.names("group.streams.assignors")[0]
        name = _broker_property(row)
        return text_of(self._config.value(name)) or "" if name in PROPERTIES else super().default(row)

    def default_synonyms(self, row: Property) -> list[Synonym]:
        name = _broker_property(row)
        if name in PROPERTIES:
            return self._config.synonyms(name)
        return [Synonym(row.name, super().default(row), DEFAULT_CONFIG)]


def _broker_property(row: Property) -> str:
    return "group.streams.assignors" if row.name == _STREAMS_ASSIGNOR else f"group.{row.name}"

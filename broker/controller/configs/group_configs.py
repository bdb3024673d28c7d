"""Configs of groups (KIP-848, GroupConfig), stored by group id whether the group exists or not.

Only those of consumer groups; Kafka's share groups and Streams groups are not served.
"""

from collections.abc import Mapping

from sluice.config.broker_config import Config
from sluice.config.property_table import PROPERTIES, Property
from sluice.config.setting import DEFAULT_CONFIG, DYNAMIC_GROUP_CONFIG, Synonym
from sluice.config.value_types import integer, text_of
from sluice.protocol.errors import ErrorCode

from .resource import ApiError
from .stored_configs import StoredConfigs

_SESSION, _HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
_ASSIGNMENT = "consumer.assignment.interval.ms"
_ROWS = (
    Property(_SESSION, integer(1), "45000", "KIP-848", "Session timeout of members, ms."),
    Property(_HEARTBEAT, integer(1), "5000", "KIP-848", "Heartbeat interval of members, ms."),
    Property(_ASSIGNMENT, integer(0), "1000", "KIP-1263", "Minimum time between assignments, ms."),
)
# The broker's bounds: property and Kafka's default of each.
_BOUNDS = {
    _SESSION: (("group.consumer.min.session.timeout.ms", 45_000), ("group.consumer.max.session.timeout.ms", 60_000)),
    _HEARTBEAT: (
        ("group.consumer.min.heartbeat.interval.ms", 5_000),
        ("group.consumer.max.heartbeat.interval.ms", 15_000),
    ),
    _ASSIGNMENT: (
        ("group.consumer.min.assignment.interval.ms", 0),
        ("group.consumer.max.assignment.interval.ms", 15_000),
    ),
}


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
        for key, value in own.items():
            least, most = (self._broker_integer(name, default) for name, default in _BOUNDS[key])
            if not least <= int(value) <= most:
                message = f"{key} must be in the range {least} to {most} inclusive."
                return ApiError(ErrorCode.INVALID_CONFIG, message)
        return None

    def default(self, row: Property) -> str:
        name = f"group.{row.name}"
        return text_of(self._config.value(name)) or "" if name in PROPERTIES else super().default(row)

    def default_synonyms(self, row: Property) -> list[Synonym]:
        name = f"group.{row.name}"
        if name in PROPERTIES:
            return self._config.synonyms(name)
        return [Synonym(name, super().default(row), DEFAULT_CONFIG)]

    def _broker_integer(self, name: str, default: int) -> int:
        return self._config.integer(name) if name in PROPERTIES else default

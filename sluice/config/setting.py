"""A property with the value in force, and what else that could have been: what tables and DescribeConfigs show."""

from typing import NamedTuple

from .property_table import Property

# Where a value comes from, as Kafka's ConfigSource calls it; the first wins.
DYNAMIC_TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"
DYNAMIC_CLIENT_METRICS_CONFIG = "DYNAMIC_CLIENT_METRICS_CONFIG"
DYNAMIC_GROUP_CONFIG = "DYNAMIC_GROUP_CONFIG"
DYNAMIC_BROKER_CONFIG = "DYNAMIC_BROKER_CONFIG"
DYNAMIC_DEFAULT_BROKER_CONFIG = "DYNAMIC_DEFAULT_BROKER_CONFIG"
STATIC_BROKER_CONFIG = "STATIC_BROKER_CONFIG"
DEFAULT_CONFIG = "DEFAULT_CONFIG"


class Synonym(NamedTuple):
    """A property that the value may come from, with what it is set to there."""

    name: str
    value: str
    source: str


class Setting:
    """A property and the value in force."""

    __slots__ = ("origin", "property", "synonyms", "value")

    def __init__(self, property_: Property, value: str | None, synonyms: list[Synonym], origin: str) -> None:
        self.property = property_
        self.value = value  # canonical text; None is Kafka's null
        self.synonyms = synonyms  # where it comes from is the first of them
        self.origin = origin  # the same for people, see Config.origin

    @property
    def source(self) -> str:
        """Where the value comes from; DEFAULT_CONFIG also where no synonym tells, as in Kafka."""
        return self.synonyms[0].source if self.synonyms else DEFAULT_CONFIG

    @property
    def sensitive(self) -> bool:
        """Whether the value must not be shown."""
        return self.property.kind.type == "PASSWORD"

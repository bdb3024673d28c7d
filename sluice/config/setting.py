"""The effective value of a property and its other sources, for tables and DescribeConfigs."""

from msgspec import Struct

from .property_table import Property

# Sources of a value, in order of precedence (Kafka's ConfigSource).
DYNAMIC_TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"
DYNAMIC_CLIENT_METRICS_CONFIG = "DYNAMIC_CLIENT_METRICS_CONFIG"
DYNAMIC_GROUP_CONFIG = "DYNAMIC_GROUP_CONFIG"
DYNAMIC_BROKER_CONFIG = "DYNAMIC_BROKER_CONFIG"
DYNAMIC_DEFAULT_BROKER_CONFIG = "DYNAMIC_DEFAULT_BROKER_CONFIG"
STATIC_BROKER_CONFIG = "STATIC_BROKER_CONFIG"
DEFAULT_CONFIG = "DEFAULT_CONFIG"

UNKNOWN_TYPE = "UNKNOWN"  # of a property that Kafka does not define; its value could be a secret


class Synonym(Struct, frozen=True):
    name: str
    value: str
    source: str


class Setting:
    __slots__ = ("origin", "property", "synonyms", "value")

    def __init__(self, property_: Property, value: str | None, synonyms: list[Synonym], origin: str) -> None:
        self.property = property_
        self.value = value  # canonical text; None is Kafka's null
        self.synonyms = synonyms  # the first is the source of the value
        self.origin = origin  # that source in readable form, see Config.origin

    @property
    def source(self) -> str:
        return self.synonyms[0].source if self.synonyms else DEFAULT_CONFIG

    @property
    def sensitive(self) -> bool:
        return self.property.kind.type in ("PASSWORD", UNKNOWN_TYPE)

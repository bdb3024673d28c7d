"""All properties of a broker as DescribeConfigs returns them: also those without effect, and unknown ones that are set.

Follows Kafka's ConfigHelper.createBrokerConfigEntry.
"""

from .broker_config import Config
from .kafka_properties import KAFKA_PROPERTIES, base_name, row_of_any
from .property_table import PROPERTIES, Property
from .setting import Setting
from .value_types import text_of


def described(config: Config) -> list[Setting]:
    hidden = {name for name, known in KAFKA_PROPERTIES.items() if known.is_internal}.difference(config.set_names())
    found = [setting for setting in config.entries() if setting.property.name not in hidden]
    for name in dict.fromkeys((*KAFKA_PROPERTIES, *config.set_names())):
        if name not in PROPERTIES and name not in hidden:
            row, base = row_of_any(name), KAFKA_PROPERTIES.get(base_name(name))
            synonyms = config.synonyms(name, *(() if base is None else (base.row,)))
            value = synonyms[0].value if synonyms else row.default
            found.append(Setting(row, value, synonyms, config.origin(name)))
    return found


def canonical(row: Property, value: str) -> str | None:
    """Return a valid value as it is described."""
    return text_of(row.kind.parse(value))

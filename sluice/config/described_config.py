"""All properties of a broker as DescribeConfigs returns them: also those without effect, and unknown ones that are set.

Follows Kafka's ConfigHelper.createBrokerConfigEntry.
"""

from .broker_config import Config
from .config_releases import FORMER_CONFIGS, default_of, has_config
from .kafka_properties import KAFKA_PROPERTIES, base_name, kind_of, row_of_any
from .property_table import NO_EFFECT, PROPERTIES, Property
from .setting import Setting
from .value_types import text_of


def described(config: Config) -> list[Setting]:
    release = config.text("sluice.kafka.release")
    set_names = config.set_names()
    listed = [
        name
        for name in dict.fromkeys((*PROPERTIES, *KAFKA_PROPERTIES, *FORMER_CONFIGS, *set_names))
        if name in set_names
        or (
            has_config(release, "broker", name)
            and not (name in KAFKA_PROPERTIES and KAFKA_PROPERTIES[name].is_internal)
        )
    ]
    of_table = {setting.property.name: setting for setting in config.entries()}
    return [of_table[name] if name in of_table else _setting(config, release, name) for name in listed]


def _setting(config: Config, release: str, name: str) -> Setting:
    row, known = row_of_any(name), KAFKA_PROPERTIES.get(base_name(name))
    bases = [] if known is None else [known.row]
    if has_config(release, "broker", name) and name in FORMER_CONFIGS:
        row = Property(name, kind_of(FORMER_CONFIGS[name].type), default_of(release, name), "Kafka", NO_EFFECT)
        bases = [row]
    synonyms = config.synonyms(name, *bases)
    value = synonyms[0].value if synonyms else row.default
    return Setting(row, value, synonyms, config.origin(name))


def canonical(row: Property, value: str) -> str | None:
    """Return a valid value as it is described."""
    return text_of(row.kind.parse(value))

"""All broker properties of Kafka 4.4 that can be described, and which of them can be altered (KIP-226).

kafka_properties.txt has a line for each, from ConfigDef and DynamicBrokerConfig of that release: name and update mode.
If it has no effect here, type, default (`-`: none), `internal` and accepted values follow. Loaded when broker configs
are altered or described, or when a property has no effect.
"""

import re
from pathlib import Path
from typing import NamedTuple

from . import value_types
from .property_table import ALIASES, NO_EFFECT, PROPERTIES, TOPIC_DEFAULT_OF, Property
from .setting import UNKNOWN_TYPE

PER_BROKER, CLUSTER_WIDE = "per-broker", "cluster-wide"  # update modes, besides read-only
_NO_DEFAULT = "-"
_UNKNOWN = value_types.Kind(UNKNOWN_TYPE, "text", str)
_LARGEST_DOUBLE = 1.7976931348623157e308


class KafkaProperty(NamedTuple):
    row: Property
    mode: str
    is_internal: bool  # described only if set


def _load() -> dict[str, KafkaProperty]:
    found = {}
    for line in Path(__file__).with_name("kafka_properties.txt").read_text(encoding="utf-8").splitlines():
        name, mode, kind, default, internal, accepts = (line.split("\t") + [""] * 4)[:6]
        row = PROPERTIES.get(name)
        if row is None:
            doc = f"Alias of {ALIASES[name]}." if name in ALIASES else NO_EFFECT
            row = Property(name, kind_of(kind, accepts), None if default == _NO_DEFAULT else default, "Kafka", doc)
        found[name] = KafkaProperty(row, mode, bool(internal))
    for name in TOPIC_DEFAULT_OF.values():  # includes properties of earlier releases
        found.setdefault(name, KafkaProperty(PROPERTIES[name], CLUSTER_WIDE, is_internal=False))
    return found


def kind_of(name: str, accepts: str = "") -> value_types.Kind:
    """Return the kind of a type of Kafka."""
    options = accepts.split("|") if "|" in accepts else []
    match name:
        case "BOOLEAN":
            return value_types.boolean()
        case "LIST":
            return value_types.names(*options) if options else value_types.listing()
        case "STRING":
            return value_types.choice(*options) if options else value_types.text()
        case "CLASS":
            return value_types.Kind(name, "a class name", str.strip)
        case "PASSWORD":
            return value_types.password()
    bounds, _, also = accepts.partition(" or ")
    least, _, most = bounds.partition("..")
    if name == "DOUBLE":
        return value_types.double(float(least or -_LARGEST_DOUBLE), float(most or _LARGEST_DOUBLE))
    largest = {"SHORT": value_types.SHORT_MAX, "INT": value_types.INT_MAX, "LONG": value_types.LONG_MAX}[name]
    number = value_types.integer(int(least or -largest - 1), int(most or largest), int(also) if also else None)
    return value_types.Kind(name, number.accepts, number.parse, number.limits)


KAFKA_PROPERTIES = _load()
_LISTENER_CONFIG = re.compile(r"listener\.name\.[^.]*\.(.*)")


def base_name(name: str) -> str:
    """Return the property that `listener.name.<listener>.<property>` sets; other names as they are."""
    match = _LISTENER_CONFIG.fullmatch(name)
    return name if match is None else match[1]


def row_of_any(name: str) -> Property:
    if name in PROPERTIES:
        return PROPERTIES[name]
    known = KAFKA_PROPERTIES.get(base_name(name))
    if known is not None and known.row.name == name:
        return known.row
    if known is None:
        return Property(name, _UNKNOWN, None, "Kafka", "")  # Kafka has no documentation for it
    return Property(name, known.row.kind, None, "Kafka", NO_EFFECT)

"""Which configs and config resources each Kafka release has, of those releases that `serve --as` names.

config_releases.txt has a line for each config of a topic or a broker that some of these releases lack, from their
ConfigDef: resource, name, first and last release (`-`: none), and for a config that is not in property_table.py or
kafka_properties.txt, type and default. Loaded when configs are described or set.
"""

from pathlib import Path
from typing import NamedTuple

from .kafka_releases import ALL
from .property_table import PROPERTIES, TOPIC_PROPERTIES

# Releases before the first one here have no DescribeConfigs; their topics have its configs.
_RELEASES = ("1.1", "2.8", "3.4", "3.9", "4.4")
_NEWEST = _RELEASES[-1]
_NONE = "-"
# The first of these releases with each resource; all have topics and brokers.
_FIRST_WITH = {"broker logger": "2.8", "client metrics": "3.9", "group": "4.4"}
# Its default is the release's own.
PROTOCOL_VERSION = "inter.broker.protocol.version"
_PROTOCOL_VERSIONS = {"1.1": "1.1-IV0", "2.8": "2.8-IV1", "3.4": "3.4-IV0", "3.9": "3.9-IV0"}


class FormerConfig(NamedTuple):
    type: str
    default: str | None


class _Span(NamedTuple):
    first: str
    last: str

    def includes(self, release: str) -> bool:
        return self.first != _NONE and _RELEASES.index(self.first) <= _number(release) <= _RELEASES.index(self.last)


def _load() -> tuple[dict[tuple[str, str], _Span], dict[str, FormerConfig]]:
    spans, former = {}, {}
    for line in Path(__file__).with_name("config_releases.txt").read_text(encoding="utf-8").splitlines():
        resource, name, first, last, kind, default = (line.split("\t") + [""] * 2)[:6]
        spans[resource, name] = _Span(first, last)
        if resource == "broker" and kind:
            former[name] = FormerConfig(kind, None if default == _NONE else default)
    return spans, former


def _number(release: str) -> int:
    number = release.removeprefix("kafka-")
    return _RELEASES.index(number) if number in _RELEASES else 0


_SPANS, FORMER_CONFIGS = _load()


def has_config(release: str, resource: str, name: str) -> bool:
    """Return whether a release has a config; a broker as `all` has those of the newest, and those with an effect."""
    span = _SPANS.get((resource, name))
    if span is None:
        return True
    if release != ALL:
        return span.includes(release)
    rows = TOPIC_PROPERTIES if resource == "topic" else PROPERTIES
    return span.last == _NEWEST or (name in rows and not rows[name].has_no_effect)


def has_resource(release: str, resource: str) -> bool:
    first = _FIRST_WITH.get(resource)
    return first is None or release == ALL or _number(release) >= _RELEASES.index(first)


def default_of(release: str, name: str) -> str | None:
    """Return the default of a former config."""
    return (
        _PROTOCOL_VERSIONS[release.removeprefix("kafka-")] if name == PROTOCOL_VERSION else FORMER_CONFIGS[name].default
    )

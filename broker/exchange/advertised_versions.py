"""API versions of Apache Kafka releases, for `sluice serve --as kafka-X`.

Taken from the releases: their ApiKeys and Protocol classes up to 1.1, their message definitions from 2.8 on; 2.8 as a
broker with ZooKeeper, later ones with KRaft.
"""

from sluice.config.broker_config import Config
from sluice.config.kafka_releases import ALL
from sluice.protocol.apis import API_KEYS, ApiKey

from .registry import HANDLERS

# API key:first version-last version.
_ADVERTISED = {
    "kafka-0.9": ("0:0-1 1:0-1 2:0-0 3:0-0 8:0-2 9:0-1 10:0-0 11:0-0 12:0-0 13:0-0 14:0-0 15:0-0 16:0-0"),
    "kafka-0.10.2": (
        "0:0-2 1:0-3 2:0-1 3:0-2 8:0-2 9:0-2 10:0-0 11:0-1 12:0-0 13:0-0 14:0-0 15:0-0 16:0-0 17:0-0 18:0-0 19:0-1 "
        "20:0-0"
    ),
    "kafka-1.1": (
        "0:0-5 1:0-7 2:0-2 3:0-5 4:0-1 5:0-0 6:0-4 7:0-1 8:0-3 9:0-3 10:0-1 11:0-2 12:0-1 13:0-1 14:0-1 15:0-1 16:0-1 "
        "17:0-1 18:0-1 19:0-2 20:0-1 21:0-0 22:0-0 23:0-0 24:0-0 25:0-0 26:0-0 27:0-0 28:0-0 29:0-0 30:0-0 31:0-0 "
        "32:0-1 33:0-0 34:0-0 35:0-0 36:0-0 37:0-0 38:0-0 39:0-0 40:0-0 41:0-0 42:0-0"
    ),
    "kafka-2.8": (
        "0:0-9 1:0-12 2:0-6 3:0-11 4:0-5 5:0-3 6:0-7 7:0-3 8:0-8 9:0-7 10:0-3 11:0-7 12:0-4 13:0-4 14:0-5 15:0-5 "
        "16:0-4 17:0-1 18:0-3 19:0-7 20:0-6 21:0-2 22:0-4 23:0-4 24:0-3 25:0-3 26:0-3 27:0-1 28:0-3 29:0-2 30:0-2 "
        "31:0-2 32:0-4 33:0-2 34:0-2 35:0-2 36:0-2 37:0-3 38:0-2 39:0-2 40:0-2 41:0-2 42:0-2 43:0-2 44:0-1 45:0-0 "
        "46:0-0 47:0-0 48:0-1 49:0-1 50:0-0 51:0-0 56:0-0 57:0-0 60:0-0 61:0-0"
    ),
    "kafka-3.4": (
        "0:0-9 1:0-13 2:0-7 3:0-12 8:0-8 9:0-8 10:0-4 11:0-9 12:0-4 13:0-5 14:0-5 15:0-5 16:0-4 17:0-1 18:0-3 19:0-7 "
        "20:0-6 21:0-2 22:0-4 23:0-4 24:0-3 25:0-3 26:0-3 27:0-1 28:0-3 29:0-3 30:0-3 31:0-3 32:0-4 33:0-2 34:0-2 "
        "35:0-4 36:0-2 37:0-3 42:0-2 43:0-2 44:0-1 45:0-0 46:0-0 47:0-0 48:0-1 49:0-1 55:0-1 57:0-1 60:0-0 61:0-0 "
        "64:0-0 65:0-0 66:0-0"
    ),
    "kafka-3.9": (
        "0:0-11 1:0-17 2:0-9 3:0-12 8:0-9 9:0-9 10:0-6 11:0-9 12:0-4 13:0-5 14:0-5 15:0-5 16:0-5 17:0-1 18:0-4 19:0-7 "
        "20:0-6 21:0-2 22:0-5 23:0-4 24:0-5 25:0-4 26:0-4 27:0-1 28:0-4 29:0-3 30:0-3 31:0-3 32:0-4 33:0-2 34:0-2 "
        "35:0-4 36:0-2 37:0-3 38:0-3 39:0-2 40:0-2 41:0-3 42:0-2 43:0-2 44:0-1 45:0-0 46:0-0 47:0-0 48:0-1 49:0-1 "
        "50:0-0 51:0-0 55:0-2 57:0-1 60:0-1 61:0-0 64:0-0 65:0-0 66:0-1 68:0-0 69:0-0 71:0-0 72:0-0 74:0-0 75:0-0 "
        "80:0-0 81:0-0"
    ),
    "kafka-4.4": (
        "0:0-13 1:4-18 2:1-11 3:0-13 8:2-10 9:1-10 10:0-6 11:0-9 12:0-4 13:0-5 14:0-5 15:0-6 16:0-5 17:0-1 18:0-5 "
        "19:2-7 20:1-6 21:0-2 22:0-5 23:2-4 24:0-5 25:0-4 26:0-5 27:1-2 28:0-6 29:1-3 30:1-3 31:1-3 32:1-4 33:0-2 "
        "34:1-2 35:1-5 36:0-2 37:0-3 38:1-3 39:1-2 40:1-2 41:1-3 42:0-3 43:0-2 44:0-1 45:0-1 46:0-0 47:0-0 48:0-1 "
        "49:0-1 50:0-0 51:0-0 55:0-2 57:0-2 60:0-2 61:0-0 64:0-0 65:0-0 66:0-2 68:0-1 69:0-1 71:0-0 72:0-0 74:0-1 "
        "75:0-0 76:1-1 77:1-1 78:1-2 79:1-2 80:0-1 81:0-0 88:0-1 89:0-1 90:0-1 91:0-0 92:0-0 93:0-0 94:0-0"
    ),
}
# Advertised from 0 on for librdkafka, but rejected below 3 (KAFKA-18659).
_SERVED_FROM = {("kafka-4.4", ApiKey.PRODUCE): 3}

VersionRange = tuple[int, int]


def advertised_by(release: str) -> dict[int, VersionRange]:
    if release == ALL:
        return {key: (handler.min_version, handler.max_version) for key, handler in HANDLERS.items()}
    return {key: versions for key, versions in _parse_versions(release).items() if key in HANDLERS}


def advertised_with(config: Config) -> dict[int, VersionRange]:
    """Return what a broker advertises: some APIs only if a property enables them."""
    advertised = advertised_by(config.text("sluice.kafka.release"))
    for key, handler in HANDLERS.items():
        if handler.api.advertised_with and not config.boolean(handler.api.advertised_with):
            advertised.pop(key, None)
    return advertised


def served_as(release: str) -> dict[int, VersionRange]:
    return {
        key: (_SERVED_FROM.get((release, key), first), last) for key, (first, last) in advertised_by(release).items()
    }


def missing(release: str) -> list[str]:
    """Return APIs that `release` advertises but this broker does not serve."""
    if release == ALL:
        return []
    return [API_KEYS[key].name for key in _parse_versions(release) if key in API_KEYS and key not in HANDLERS]


def _parse_versions(release: str) -> dict[int, VersionRange]:
    versions = {}
    for entry in _ADVERTISED[release].split():
        key, _, versions_of_key = entry.partition(":")
        first, _, last = versions_of_key.partition("-")
        versions[int(key)] = (int(first), int(last))
    return versions

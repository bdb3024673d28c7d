"""docs/reference/api-coverage.md from the registry and API table."""

from pathlib import Path

from sluice.broker.exchange.registry import HANDLERS
from tools.docs.reference.kafka_apis import kafka_apis
from tools.docs.tables import table

PAGE = Path(__file__).parents[3] / "docs/reference/api-coverage.md"
_HEAD = """\
# API coverage

This page lists every API of Apache Kafka 4.4, and the versions that sluice serves. Use it to check whether sluice
serves the requests of your client. It is generated from the broker's registry, as the ApiVersions response is.

sluice also serves versions that Kafka 4.0 removed, for old clients; `sluice serve --as kafka-X` serves the versions of
one release only. If a client sends an API or version that is not served, the broker closes the connection, as Kafka
does.
"""


def page() -> str:
    """Return the whole page."""
    served, missing = [], []
    for key, name, versions, not_served in kafka_apis():
        kafkas = versions.replace("-", " to ")
        if not_served:
            missing.append([str(key), name, kafkas, not_served])
        else:
            served.append([str(key), name, versions_of(key), kafkas])
    parts = [
        _HEAD,
        f"## Served: {len(served)} APIs\n",
        table(("key", "API", "versions in sluice", "versions in Kafka 4.4"), served),
        f"## Not served: {len(missing)} APIs\n",
        table(("key", "API", "versions in Kafka 4.4", "reason"), missing),
    ]
    return "\n".join(parts)


def versions_of(api_key: int) -> str:
    """Return the versions that sluice serves of an API, such as "0 to 13"."""
    served = HANDLERS[api_key]
    least, most = served.min_version, served.max_version
    return str(least) if least == most else f"{least} to {most}"

"""docs/reference/api-coverage.md: every API key of Apache Kafka 4.4, and why sluice does not serve some of them.

Names and versions of client APIs are those that kafka-clients 4.4.0 declares (the vectors `api_versions-4.4.0`). APIs
between brokers are listed without versions.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sluice.broker.exchange.registry import HANDLERS
from tests.support.vectors import vectors
from tools.docs.tables import table


class KafkaApi(NamedTuple):
    """An API of Kafka 4.4. `versions` is "" for APIs between brokers; `not_served` is "" for the APIs served here."""

    api_key: int
    name: str
    versions: str
    not_served: str = ""


# A broker of Kafka 4.4.0 advertises them, and forwards them to the controller; kafka-clients does not declare them.
_FORWARDED = {55: ("DescribeQuorum", "0-2"), 57: ("UpdateFeatures", "0-2")}
# By reason, the keys of declared APIs, and the names of the others.
_NOT_SERVED: Mapping[str, Mapping[int, str]] = {
    "between brokers; Kafka 4.0 removed it with ZooKeeper": {
        4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata", 7: "ControlledShutdown",
    },
    "between brokers and KRaft controllers; the controller of a sluice cluster is in the same process": {
        52: "Vote", 53: "BeginQuorumEpoch", 54: "EndQuorumEpoch", 56: "AlterPartition", 58: "Envelope",
        59: "FetchSnapshot", 62: "BrokerRegistration", 63: "BrokerHeartbeat", 67: "AllocateProducerIds",
        70: "ControllerRegistration", 73: "AssignReplicasToDirs", 82: "UpdateRaftVoter",
    },
    "delegation tokens are not implemented": dict.fromkeys((38, 39, 40, 41), ""),
    "between brokers, for share groups": {
        83: "InitializeShareGroupState", 84: "ReadShareGroupState", 85: "WriteShareGroupState",
        86: "DeleteShareGroupState", 87: "ReadShareGroupStateSummary",
    },
    "a sluice cluster has no controller quorum": dict.fromkeys((80, 81, 94), ""),
}  # fmt: skip


def kafka_apis() -> list[KafkaApi]:
    """Return all APIs by their keys."""
    found = dict(_FORWARDED)
    declared: list[Any] = list(vectors("api_versions-4.4.0"))
    for one in declared:
        least, most = one["min"], one["highest_stable"]
        found[one["api_key"]] = one["name"], str(least) if least == most else f"{least}-{most}"
    reasons = {key: reason for reason, names in _NOT_SERVED.items() for key in names}
    for names in _NOT_SERVED.values():
        found |= {key: (name, "") for key, name in names.items() if name}
    return [KafkaApi(key, *found[key], reasons.get(key, "")) for key in sorted(found)]


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

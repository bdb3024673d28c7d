"""Clients that use API versions that Kafka 4.0 no longer serves (KIP-896)."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_MOST_SHOWN = 5


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    ended = facts.connections.ended
    if ended:
        shown = ", ".join(f"{api} {version}" for api, version in sorted(ended)[:_MOST_SHOWN])
        more = f" and {len(ended) - _MOST_SHOWN} others" if len(ended) > _MOST_SHOWN else ""
        sets = facts.producing.message_sets
        words = f"; {sets:,} batches have message format 0 or 1 (KIP-724)" if sets else ""
        yield Evidence(
            f"requests in versions below those of Kafka 4.0: {shown}{more}{words}",
            next(iter(ended.values())),
        )


RULE = Rule(
    id="ended-versions",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Clients that use API versions that Kafka 4.0 no longer serves",
    why="A broker of Kafka 4.0 or later closes the connection at such a request (KIP-896), and has no message formats "
    "0 and 1 (KIP-724).",
    citation=Citation(
        where="Upgrading to 4.0",
        url="https://kafka.apache.org/40/getting-started/upgrade",
        words="Clients (including Streams and Connect) must be on version 2.1 or higher before upgrading to 4.0.",
    ),
    remedy=Remedy(
        java="kafka-clients 2.1 or later",
        librdkafka="librdkafka 2.0 or later, without broker.version.fallback and api.version.request=false",
        aiokafka="a current version, without api_version of an old broker",
        franz_go="without kgo.MaxVersions of an old broker",
        kafkajs="kafkajs 2.0 or later",
    ),
    silent="If the broker closes the connection before the request is recorded.",
    check=_check,
)

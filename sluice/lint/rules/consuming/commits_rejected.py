"""Consumers that commit after they have lost their partitions."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    committing = facts.committing
    if committing.removed or committing.outdated.fastest_ns:
        yield Evidence(
            f"commits that failed with UNKNOWN_MEMBER_ID: {committing.removed:,}, with ILLEGAL_GENERATION: "
            f"{committing.outdated.count:,}",
            committing.rejected_examples,
        )


RULE = Rule(
    id="commits-rejected",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Commits that fail because the consumer is no longer a member",
    why="The group has given the partitions to another member while the consumer was processing. That member "
    "processes the same records again.",
    citation=Citation(
        where="CommitFailedException",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/CommitFailedException.html",
        words="In this case, the commit cannot generally be retried because some of the partitions may have "
        "already been assigned to another member in the group.",
    ),
    remedy=Remedy(
        java="smaller max.poll.records, or larger max.poll.interval.ms",
        librdkafka="larger max.poll.interval.ms",
        aiokafka="larger max_poll_interval_ms and rebalance_timeout_ms, or smaller max_poll_records",
        franz_go="larger kgo.RebalanceTimeout, or kgo.BlockRebalanceOnPoll()",
        kafkajs="larger sessionTimeout, and heartbeat() while processing",
    ),
    silent="If one commit was of an earlier generation, as it may be in a rebalance; if a fault rule injected the "
    "error.",
    check=_check,
)

"""Groups that rebalance again and again with the same members."""

from collections.abc import Iterator

from sluice.lint.facts.group_facts import GroupFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# Changed subscriptions, and new partitions of subscribed topics, cause some rebalances, too.
_REBALANCES = 5


def _check(facts: GroupFacts) -> Iterator[Evidence]:
    membership = facts.membership
    count = membership.unexplained_rebalances()
    if count >= _REBALANCES:
        yield Evidence(
            f"{count:,} rebalances within 5 minutes that no client which joined or left explains, of "
            f"{membership.rebalances:,} in total",
            membership.rebalance_examples,
        )


RULE = Rule(
    id="rebalance-loop",
    scope=Scope.GROUP,
    severity=Severity.ERROR,
    title="A rebalance loop",
    why="During a rebalance, members do not process records, and afterwards some records are read again. A "
    "group in a loop may never get ahead.",
    citation=Citation(
        where="KafkaConsumer, Detecting Consumer Failures",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/KafkaConsumer.html",
        words="Basically if you don't call poll at least as frequently as the configured max interval, then the"
        " client will proactively leave the group so that another consumer can take over its partitions.",
    ),
    remedy=Remedy(
        java="larger max.poll.interval.ms and session.timeout.ms, or smaller max.poll.records",
        librdkafka="larger max.poll.interval.ms and session.timeout.ms",
        aiokafka="larger max_poll_interval_ms and session_timeout_ms, or smaller max_poll_records",
        franz_go="larger kgo.RebalanceTimeout and kgo.SessionTimeout",
        kafkajs="larger sessionTimeout and rebalanceTimeout, and heartbeat() while processing",
    ),
    silent="If members that join on new connections, or leave, explain the rebalances.",
    check=_check,
)

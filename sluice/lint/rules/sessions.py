"""Rules about the timeouts of group members: heartbeats, polls and returns."""

from collections.abc import Iterator

from sluice.lint.facts.subjects import GroupFacts
from sluice.lint.rule import Evidence, Remedy, Severity, cited, noted, properties, rule

_AGAIN = 2
_LONGER_TIMEOUT = properties(
    "session.timeout.ms=45000", franz_go="kgo.SessionTimeout(45 * time.Second)", kafkajs="sessionTimeout: 30000"
)


@rule(
    Severity.WARNING,
    title="Consumers that are not closed",
    why="The group keeps the partitions of such a member for the whole session timeout. Meanwhile their records are "
    "not read, and new members wait.",
    citation=cited(
        "KafkaConsumer, Detecting Consumer Failures",
        "If the consumer crashes or is unable to send heartbeats for a duration of session.timeout.ms, then the "
        "consumer will be considered dead and its partitions will be reassigned.",
    ),
    remedy=Remedy(
        java="consumer.close() in a finally block, with wakeup() on shutdown",
        librdkafka="consumer.close() in a finally block",
        aiokafka="await consumer.stop() in a finally block",
        franz_go="client.Close(), or client.LeaveGroup()",
        kafkajs="await consumer.disconnect() on SIGTERM",
    ),
    silent="If it happened once, which may be a crash, or most members leave; for static members; if the journal ends "
    "before the session timeout.",
)
def closed_without_leaving(facts: GroupFacts) -> Iterator[Evidence]:
    silent = facts.membership.silent_members()
    if len(silent) >= _AGAIN and len(silent) > facts.membership.members_that_left():
        text = ", ".join(f"client {each.client_id} after {each.session_timeout_ms / 1e3:g} s" for each in silent[:5])
        yield Evidence(
            f"the session timeout of {len(silent):,} members passed without a LeaveGroup: {text}",
            facts.membership.expired_examples,
        )


_INTERVALS = 3
# A quantile of a Distribution is up to 1/8 too high.
_CERTAIN = 8 / 9
_MOST_MEMBERS = 5


@rule(
    Severity.WARNING,
    title="Heartbeats too far apart for the session timeout",
    why="One or two late heartbeats are enough for the broker to remove the member, and the group rebalances.",
    citation=cited(
        "Consumer Configs, heartbeat.interval.ms",
        "the value must be set lower than session.timeout.ms, but typically should be set no higher than 1/3 of that "
        "value",
    ),
    remedy=properties(
        "heartbeat.interval.ms=3000, session.timeout.ms=45000",
        franz_go="kgo.HeartbeatInterval(3 * time.Second), kgo.SessionTimeout(45 * time.Second)",
        kafkajs="heartbeatInterval: 3000, sessionTimeout: 30000",
    ),
    silent="If a member sent fewer than four heartbeats, or uses group.protocol=consumer, where the broker sets the "
    "interval.",
)
def heartbeat_interval(facts: GroupFacts) -> Iterator[Evidence]:
    found = 0
    for member in facts.membership.members.values():
        interval_ms = member.heartbeat_ms.quantile(0.25)
        is_seen = member.heartbeat_ms.count >= _INTERVALS and member.session_timeout_ms > 0
        if is_seen and interval_ms * _CERTAIN > member.session_timeout_ms / 3 and found < _MOST_MEMBERS:
            found += 1
            yield Evidence(
                f"client {member.client_id} sends a heartbeat every {interval_ms:,} ms, with a session timeout of "
                f"{member.session_timeout_ms:,} ms"
            )


@rule(
    Severity.WARNING,
    title="Members that are late in rebalances",
    why="A consumer joins a rebalance when the application polls. All members wait for the latest one, and the broker "
    "removes a member that exceeds the timeout.",
    citation=cited(
        "KafkaConsumer, Detecting Consumer Failures",
        "The drawback is that increasing this value may delay a group rebalance since the consumer will only join the "
        "rebalance inside the call to poll.",
    ),
    remedy=Remedy(
        java="smaller max.poll.records, or larger max.poll.interval.ms",
        librdkafka="larger max.poll.interval.ms, or pause() and poll() while processing",
        aiokafka="larger rebalance_timeout_ms, and no blocking code in the rebalance listener",
        franz_go="larger kgo.RebalanceTimeout",
        kafkajs="larger rebalanceTimeout, and heartbeat() while processing",
    ),
    silent="If the group does not rebalance while the application processes records, or the member joins in less than "
    "half of its rebalance timeout.",
)
def poll_near_limit(facts: GroupFacts) -> Iterator[Evidence]:
    return noted(facts.membership.rejoined_late)


@rule(
    Severity.WARNING,
    title="Members that exceed max.poll.interval.ms",
    why="The client leaves the group when the application takes longer than max.poll.interval.ms for the records of "
    "one poll. The group rebalances, and another member processes the same records.",
    citation=cited(
        "Consumer Configs, max.poll.interval.ms",
        "If poll() is not called before expiration of this timeout, then the consumer is considered failed and the "
        "group will rebalance in order to reassign the partitions to another member.",
    ),
    remedy=Remedy(
        java="smaller max.poll.records, or larger max.poll.interval.ms",
        librdkafka="larger max.poll.interval.ms, or pause() and poll() while processing",
        aiokafka="larger max_poll_interval_ms, or smaller max_poll_records",
        franz_go="larger kgo.RebalanceTimeout with kgo.BlockRebalanceOnPoll()",
        kafkajs="larger sessionTimeout, and heartbeat() while processing",
    ),
    silent="If the member does not join again on the same connection, or leaves before its rebalance timeout, which is "
    "not max.poll.interval.ms in aiokafka.",
)
def poll_too_late(facts: GroupFacts) -> Iterator[Evidence]:
    return noted(facts.membership.poll_too_late)


@rule(
    Severity.WARNING,
    title="Members that miss their session timeout",
    why="The member still processes records that the group has given to another member. Often the application blocks "
    "the thread or event loop that sends heartbeats.",
    citation=cited(
        "Consumer Configs, session.timeout.ms",
        "If no heartbeats are received by the broker before the expiration of this session timeout, then the broker "
        "will remove this client from the group and initiate a rebalance.",
    ),
    remedy=properties(
        "session.timeout.ms=45000",
        aiokafka="session_timeout_ms=45000; run blocking code with asyncio.to_thread",
        franz_go="kgo.SessionTimeout(45 * time.Second)",
        kafkajs="sessionTimeout: 30000, and heartbeat() while processing",
    ),
    silent="If the member sends no request afterwards (closed-without-leaving).",
)
def session_expired(facts: GroupFacts) -> Iterator[Evidence]:
    return noted(facts.membership.session_expired)


@rule(
    Severity.ERROR,
    title="A session timeout that the broker does not allow",
    why="The member cannot join the group, so it reads nothing.",
    citation=cited(
        "Consumer Configs, session.timeout.ms",
        "Note that the value must be in the allowable range as configured in the broker configuration by "
        "group.min.session.timeout.ms and group.max.session.timeout.ms.",
    ),
    remedy=_LONGER_TIMEOUT,
    silent="If a fault rule injected the error.",
)
def session_timeout_rejected(facts: GroupFacts) -> Iterator[Evidence]:
    return noted(facts.membership.invalid_session_timeouts)


# Kafka's default of group.min.session.timeout.ms.
_SHORTEST_MS = 6000


@rule(
    Severity.WARNING,
    title="A session timeout below 6 s",
    why="A garbage collection, a slow network or a busy event loop of a few seconds removes the member from its group. "
    "Brokers with their default settings reject such a timeout.",
    citation=cited(
        "Broker Configs, group.min.session.timeout.ms",
        "Shorter timeouts result in quicker failure detection at the cost of more frequent consumer heartbeating, "
        "which can overwhelm broker resources.",
    ),
    remedy=_LONGER_TIMEOUT,
    silent="If the timeout is at least 6 s, or was rejected (session-timeout-rejected).",
)
def session_timeout_short(facts: GroupFacts) -> Iterator[Evidence]:
    short = [each for each in facts.membership.members.values() if 0 < each.session_timeout_ms < _SHORTEST_MS]
    if short:
        member = min(short, key=lambda each: each.session_timeout_ms)
        others = f"; members with less than 6 s: {len(short):,}" if len(short) > 1 else ""
        yield Evidence(f"client {member.client_id} has a session timeout of {member.session_timeout_ms:,} ms{others}")


@rule(
    Severity.WARNING,
    title="Static members with a session timeout shorter than their restarts",
    why="The broker had given the partitions to other members, and now they move back: two rebalances that static "
    "membership is there to avoid.",
    citation=cited(
        "Consumer Configs, group.instance.id",
        "This can be used in combination with a larger session timeout to avoid group rebalances caused by transient "
        "unavailability (e.g. process restarts).",
    ),
    remedy=properties(
        "session.timeout.ms above the time of a restart, such as 120000",
        franz_go="kgo.SessionTimeout above the time of a restart, such as 2 * time.Minute",
    ),
    silent="If the member was away for more than 5 minutes, or the group had no other member.",
)
def static_member_expires(facts: GroupFacts) -> Iterator[Evidence]:
    return noted(facts.membership.returned_late)

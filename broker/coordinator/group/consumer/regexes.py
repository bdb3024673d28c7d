"""The regular expressions in the subscriptions of a consumer group, and when they are resolved.

Follows Kafka's TopicRegexResolver and GroupMetadataManager (maybeUpdateRegularExpressions,
handleRegularExpressionsResult): a topic matches if its whole name does; all expressions of
a group together, when one is new, after topics are created, or after `group.consumer.regex.refresh.interval.ms`; but at
most every 10 s.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.requests.context import RequestContext
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.broker.security.acl.authorizer import Authorizer
from sluice.text.regex import compile_regex

from .group import ConsumerGroup, regex_record
from .member import ConsumerMember, ResolvedRegex

_MIN_REFRESH_INTERVAL_MS = 10_000
Matches = Mapping[str, ResolvedRegex]  # by expression


class RegexChange(NamedTuple):
    changed: bool
    affects_target: bool  # false for a new expression until it is resolved
    unused: str | None  # an expression that lost its last subscriber


class RegexSubscriptions:
    def __init__(self, cluster: Cluster, auth: Authorizer, refresh_interval_ms: int) -> None:
        self._auth = auth
        self._cluster = cluster
        self._refresh_interval_ms = refresh_interval_ms

    def change(self, group: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember) -> RegexChange:
        old, new = member.subscribed_topic_regex, updated.subscribed_topic_regex
        if old == new:
            return RegexChange(False, False, None)
        unused = None
        if old and group.regex_subscribers()[old] == 1:
            unused = old
            group.regexes.pop(old, None)
        return RegexChange(True, new in group.regexes if new else True, unused)

    def remove_unused(self, group: ConsumerGroup) -> list[KeyValue]:
        subscribers = group.regex_subscribers()
        unused = [regex for regex in group.regexes if regex not in subscribers]
        for regex in unused:
            del group.regexes[regex]
        return [regex_record(group.group_id, regex) for regex in unused]

    def refresh(self, group: ConsumerGroup, now_ms: int, apply: Callable[[Matches], None]) -> None:
        """Resolve the group's expressions in the worker if due; then call `apply`."""
        regexes = [*group.regex_subscribers()]
        if group.resolves_regexes or not regexes or not self._is_due(group, len(regexes), now_ms):
            return
        names, version = [*self._cluster.topics], self._cluster.topics_created

        def done(resolved: Callable[[], Matches]) -> None:
            group.resolves_regexes = False
            apply(resolved())

        group.resolves_regexes = True
        self._cluster.runtime.worker.run(
            lambda: {regex: ResolvedRegex(_matching(regex, names), version, now_ms) for regex in regexes}, done
        )

    def update(self, ctx: RequestContext, group: ConsumerGroup, matches: Matches) -> tuple[list[KeyValue], bool]:
        """Return the records of resolved expressions, and whether the topics have changed.

        Only topics that this member may describe match.
        """
        subscribers = group.regex_subscribers()
        records, changed = [], False
        for regex, resolved in matches.items():
            if regex not in subscribers:
                continue
            before = group.regexes.get(regex)
            hidden = self._auth.filter_denied(
                ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, resolved.topics, log_denied=False
            )
            found = resolved._replace(topics=resolved.topics.difference(hidden))
            changed |= found.topics != (frozenset() if before is None else before.topics)
            group.regexes[regex] = found
            records.append(regex_record(group.group_id, regex, found))
        return records, changed

    def _is_due(self, group: ConsumerGroup, subscribed: int, now_ms: int) -> bool:
        last = next(iter(group.regexes.values()), None)
        if last is None:
            return True
        if now_ms <= last.timestamp_ms + _MIN_REFRESH_INTERVAL_MS:
            return False
        return (
            subscribed != len(group.regexes)
            or last.version < self._cluster.topics_created
            or now_ms > last.timestamp_ms + self._refresh_interval_ms
        )


def _matching(text: str, topics: Iterable[str]) -> frozenset[str]:
    pattern = compile_regex(text)
    return frozenset(topic for topic in topics if pattern.fullmatch(topic))

"""Subscriptions by regular expressions that the broker evaluates (ConsumerGroupHeartbeat v1, KIP-848).

Follows Kafka's TopicRegexResolver: a topic matches if its whole name does.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sluice.text.regex import compile_regex


class ResolvedRegex(NamedTuple):
    topics: frozenset[str]
    version: int  # number of topics created until then
    timestamp_ms: int  # wall clock


def resolve(text: str, topics: Iterable[str]) -> frozenset[str]:
    pattern = compile_regex(text)
    return frozenset(topic for topic in topics if pattern.fullmatch(topic))

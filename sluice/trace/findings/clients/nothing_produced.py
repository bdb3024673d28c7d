"""Producers that looked up a topic, or initialized a producer id, and sent no record."""

from collections.abc import Iterator

from sluice.journal_events import Request
from sluice.trace.described import has_failed
from sluice.trace.findings.history import Found, History, client_of, grouped, listed, topics_of

_JOURNAL_READER = "sluice-journal"  # client id of `sluice trace kafka://...`, whose fetches are not recorded
# What a client that is not only a producer sends.
_OTHER_WORK = frozenset(
    {
        *("Produce", "Fetch", "ShareFetch", "ListOffsets", "JoinGroup", "ConsumerGroupHeartbeat", "OffsetFetch"),
        *("CreateTopics", "DeleteTopics", "CreatePartitions", "DescribeConfigs", "DescribeTopicPartitions"),
        *("DescribeGroups", "ListGroups", "DescribeCluster", "IncrementalAlterConfigs", "AlterConfigs"),
    }
)


def find(history: History) -> Iterator[Found]:
    for client, requests in grouped(history.requests, client_of).items():
        if client != _JOURNAL_READER and _OTHER_WORK.isdisjoint(one.api for one in requests):
            inits = [one for one in requests if one.api == "InitProducerId" and not has_failed(one)]
            lookups = [one for one in requests if one.api == "Metadata" and one.partitions and not has_failed(one)]
            if inits:
                yield _finding(history, client, inits[0], lookups, "initialized a producer id")
            elif lookups:
                yield _finding(history, client, lookups[0], lookups, "looked up the topic")
            elif {one.api for one in requests} == {"ApiVersions"} and not any(one.rule_id for one in requests):
                yield _finding(history, client, requests[0], [], "connected")


def _finding(history: History, client: str, first: Request, lookups: list[Request], did: str) -> Found:
    topics = topics_of(lookups)
    where = f" to {listed(topics)}" if topics else ""
    title = f"Client {client} produced nothing{where}"
    text = f"It {did} at {history.when(first.received_ns)}, and sent no Produce request. Possible reasons: it was not "
    text += "flushed or closed, serialization failed, or the test ended within linger.ms."
    return Found("nothing-produced", "warning", title, text, first.received_ns, [first.seq], [client, *topics])

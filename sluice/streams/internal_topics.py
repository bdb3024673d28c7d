"""The internal topics of an application, created by the group leader (Kafka's InternalTopicManager, RepartitionTopics).

    <application.id>-<name>-repartition    has as many partitions as the largest source topic of its writers
    <application.id>-<store>-changelog     has as many partitions as the store has tasks; compacted

The leader describes the topics and creates the missing ones until all exist, with the calls interleaved as KIP-572
requires, and a constant `retry.backoff.ms` after a transient error. After half of `max.poll.interval.ms` it rejoins,
because the group would remove it.
"""

import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from sluice.client import errors
from sluice.client.admin import AdminClient, NewTopic
from sluice.client.errors import KafkaException, TimeoutException
from sluice.clock import Clock, sleep_ms

from .errors import StreamsException
from .topology import ProcessorTopology, Subtopology

_T = TypeVar("_T")

log = logging.getLogger("sluice.streams")

_CHANGELOG = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
_REPARTITION = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "retention.ms": "-1",
    "segment.bytes": "52428800",
}


class InternalTopic(NamedTuple):
    partitions: int
    configs: Mapping[str, str]


class InternalTopicManager:
    def __init__(
        self,
        admin: AdminClient,
        clock: Clock,
        *,
        replication_factor: int,
        retry_backoff_ms: int,
        max_poll_interval_ms: int,
        topic_configs: Mapping[str, str],
    ) -> None:
        self._admin = admin
        self._clock = clock
        self._replication_factor = replication_factor
        self._retry_backoff_ms = retry_backoff_ms
        self._timeout_ms = max_poll_interval_ms // 2
        self._topic_configs = topic_configs

    async def prepare(self, topology: ProcessorTopology) -> dict[str, int]:
        """Ensure that all topics exist; return the partition counts of source topics.

        Raise TimeoutException, or StreamsException for a missing source topic or another partition count.
        """
        deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        counts = await self._partitions_of_sources(topology, deadline_ms)
        repartitions = repartition_counts(topology.subtopologies, counts)
        counts |= repartitions
        topics = {
            name: InternalTopic(count, {**_REPARTITION, **self._topic_configs}) for name, count in repartitions.items()
        }
        for part in topology.subtopologies:
            tasks = max((counts[topic] for topic in part.sources), default=0)
            topics |= {
                name: InternalTopic(tasks, {**_CHANGELOG, **self._topic_configs}) for name in part.stores.values()
            }
        await self.make_ready(topics, deadline_ms)
        return counts

    async def _partitions_of_sources(self, topology: ProcessorTopology, deadline_ms: float) -> dict[str, int]:
        wanted = {
            topic for part in topology.subtopologies for topic in part.sources if topic not in part.repartition_sources
        }
        found: dict[str, int] = {}
        while True:
            existing, missing = await self._describe(wanted - found.keys())
            found |= existing
            if missing:
                raise StreamsException(f"source topic {', '.join(sorted(missing))} does not exist")
            if len(found) == len(wanted):
                return found
            await self._wait(wanted - found.keys(), deadline_ms)

    async def make_ready(self, topics: Mapping[str, InternalTopic], deadline_ms: float) -> None:
        left = dict(topics)
        while left:
            existing, missing = await self._describe(left)
            for name, count in existing.items():
                if count != left[name].partitions:
                    raise StreamsException(
                        f"topic {name}: expected {left[name].partitions} partitions, got {count}; "
                        "it was created for other input. Delete it to start again"
                    )
                del left[name]
            created = await self._create({name: topics[name] for name in missing})
            left = {name: topic for name, topic in left.items() if name not in created}
            if left:
                await self._wait(left, deadline_ms)

    async def _describe(self, names: Iterable[str]) -> tuple[dict[str, int], set[str]]:
        wanted = sorted(names)
        found: dict[str, int] = {}
        missing: set[str] = set()
        if not wanted:
            return found, missing
        described = await self._tried(self._admin.describe_topics(wanted), f"describing {', '.join(wanted)}")
        if described is None:
            return found, missing
        for name in wanted:
            try:
                found[name] = len(described[name].partitions)
            except errors.UnknownTopicOrPartitionException:
                missing.add(name)
            except (errors.LeaderNotAvailableException, TimeoutException) as error:
                log.info(f"topic {name} cannot be described yet: {error}")
            except KafkaException as error:
                raise StreamsException(f"topic {name} cannot be described: {error}") from error
        return found, missing

    async def _create(self, topics: Mapping[str, InternalTopic]) -> set[str]:
        if not topics:
            return set()
        new = [
            NewTopic(name, topic.partitions, self._replication_factor, topic.configs) for name, topic in topics.items()
        ]
        created = await self._tried(self._admin.create_topics(new), f"creating {', '.join(sorted(topics))}")
        if created is None:
            return set()
        failed = created.errors()
        for name, error in failed.items():
            if not isinstance(error, errors.TopicExistsException | TimeoutException):
                raise StreamsException(f"topic {name} cannot be created: {error}") from error
            log.info(f"topic {name} cannot be created yet: {error}")
        created_names = topics.keys() - failed.keys()
        if created_names:
            log.info(f"created topics: {', '.join(sorted(created_names))}")
        return created_names

    async def _tried(self, call: Awaitable[_T], description: str) -> _T | None:
        try:
            return await call
        except TimeoutException as error:
            log.info(f"{description} timed out: {error}")
            return None
        except KafkaException as error:
            raise StreamsException(f"{description} failed: {error}") from error

    async def _wait(self, names: Iterable[str], deadline_ms: float) -> None:
        topics = ", ".join(sorted(names))
        left_ms = deadline_ms - self._clock.monotonic_ms()
        if left_ms <= 0:
            log.error(f"topics {topics} were not ready within {self._timeout_ms} ms, half of max.poll.interval.ms")
            raise TimeoutException(f"topics {topics} were not ready within {self._timeout_ms} ms")
        log.info(f"topics {topics} are not ready: retry in {self._retry_backoff_ms} ms, for another {left_ms:.0f} ms")
        await sleep_ms(self._clock, self._retry_backoff_ms)


def repartition_counts(parts: Sequence[Subtopology], counts: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    unknown = {topic for part in parts for topic in part.repartition_sources}
    while unknown:
        known = dict(counts) | found
        read_for = {
            topic: [source for part in parts if topic in part.sinks for source in part.sources] for topic in unknown
        }
        now = {
            topic: max(known[source] for source in sources)
            for topic, sources in read_for.items()
            if all(source in known for source in sources)
        }
        assert now, "the graph has a cycle, although a node is created after its parents"
        found |= now
        unknown -= now.keys()
    return found

"""The topics that an application has for itself, as the group's leader sees to them while it assigns (Kafka's
InternalTopicManager and RepartitionTopics).

    <application.id>-<name>-repartition    as many partitions as the largest topic that is written to it from
    <application.id>-<store>-changelog     as many as the store has tasks; compacted

The leader asks which there are, makes those that there are not, and asks again, round by round, with the calls
interleaved as KIP-572 wants them kept. What passes (a leader that is not there yet, a topic that is being deleted, a
call that takes too long) is tried again after `retry.backoff.ms`, the same each time, until half of
`max.poll.interval.ms` is over: a leader that goes on for longer is taken for dead. Then it is a TimeoutException, after
which the leader joins anew.
"""

import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence, Sized
from typing import NamedTuple, Protocol, TypeVar

from sluice.client import errors
from sluice.client.admin import NewTopic
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
    """A topic to make."""

    partitions: int
    configs: Mapping[str, str]


class DescribedTopic(Protocol):
    @property
    def partitions(self) -> Sized: ...


class DescribedTopics(Protocol):
    def __getitem__(self, name: str, /) -> DescribedTopic: ...


class CreatedTopics(Protocol):
    def errors(self) -> Mapping[str, KafkaException]: ...


class TopicAdmin(Protocol):
    """What is needed of the admin client."""

    async def describe_topics(self, names: Iterable[str]) -> DescribedTopics: ...

    async def create_topics(self, topics: Iterable[NewTopic]) -> CreatedTopics: ...


class InternalTopicManager:
    """Of one member; it is used while that is the leader."""

    def __init__(
        self,
        admin: TopicAdmin,
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
        """Sees that all topics are there; returns how many partitions those have that are read.

        Raises TimeoutException, and StreamsException where a topic is missing or wrong.
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
        """Of the topics that others write."""
        wanted = {
            topic for part in topology.subtopologies for topic in part.sources if topic not in part.repartition_sources
        }
        found: dict[str, int] = {}
        while True:
            there, missing = await self._describe(wanted - found.keys())
            found |= there
            if missing:
                raise StreamsException(f"source topic {', '.join(sorted(missing))} does not exist")
            if len(found) == len(wanted):
                return found
            await self._wait(wanted - found.keys(), deadline_ms)

    async def make_ready(self, topics: Mapping[str, InternalTopic], deadline_ms: float) -> None:
        """Makes those that there are not. Raises TimeoutException, StreamsException."""
        left = dict(topics)
        while left:
            there, missing = await self._describe(left)
            for name, count in there.items():
                if count != left[name].partitions:
                    raise StreamsException(
                        f"topic {name} has {count} partitions, and needs {left[name].partitions}: "
                        "it was made for other input; delete it to begin anew"
                    )
                del left[name]
            created = await self._create({name: topics[name] for name in missing})
            left = {name: topic for name, topic in left.items() if name not in created}
            if left:
                await self._wait(left, deadline_ms)

    async def _describe(self, names: Iterable[str]) -> tuple[dict[str, int], set[str]]:
        """How many partitions there are of topics, and which do not exist; of others that cannot be told now."""
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
        """The names of those that were made."""
        if not topics:
            return set()
        new = [
            NewTopic(name, topic.partitions, self._replication_factor, topic.configs) for name, topic in topics.items()
        ]
        created = await self._tried(self._admin.create_topics(new), f"making {', '.join(sorted(topics))}")
        if created is None:
            return set()
        failed = created.errors()
        for name, error in failed.items():
            if not isinstance(error, errors.TopicExistsException | TimeoutException):
                raise StreamsException(f"topic {name} cannot be made: {error}") from error
            log.info(f"topic {name} cannot be made yet: {error}")
        made = topics.keys() - failed.keys()
        if made:
            log.info(f"made topics: {', '.join(sorted(made))}")
        return made

    async def _tried(self, call: Awaitable[_T], what: str) -> _T | None:
        """None: it took too long."""
        try:
            return await call
        except TimeoutException as error:
            log.info(f"{what} took too long: {error}")
            return None
        except KafkaException as error:
            raise StreamsException(f"{what} failed: {error}") from error

    async def _wait(self, names: Iterable[str], deadline_ms: float) -> None:
        """Until the next round. Raises TimeoutException where there is to be none."""
        topics = ", ".join(sorted(names))
        left_ms = deadline_ms - self._clock.monotonic_ms()
        if left_ms <= 0:
            log.error(f"topics {topics} were not ready within {self._timeout_ms} ms, half of max.poll.interval.ms")
            raise TimeoutException(f"topics {topics} were not ready within {self._timeout_ms} ms")
        log.info(f"topics {topics} are not ready: again in {self._retry_backoff_ms} ms, for {left_ms:.0f} ms more")
        await sleep_ms(self._clock, self._retry_backoff_ms)


def repartition_counts(parts: Sequence[Subtopology], counts: Mapping[str, int]) -> dict[str, int]:
    """How many partitions repartition topics have: as many as the largest topic that they are written from."""
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
        assert now, "a node is made after those that give it records: there is no circle"
        found |= now
        unknown -= now.keys()
    return found

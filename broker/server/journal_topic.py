"""The journal as the topic `__sluice_journal`, for consumers of any Kafka client.

One partition keeps the order. A record's key is the client id (null if the event has no client), its value the event as
JSON, its timestamp the event's time. Every 20 ms, up to 256 events are written, which does not delay clients.

Off unless `sluice.journal.topic=true`: at full rate a record costs more time than its request.
"""

import msgspec

from sluice.broker.controller.cluster import Cluster
from sluice.broker.journal.journal import Journal
from sluice.broker.journal.reader import PAGE_ENTRIES, POLL_MS, EventFilter, JournalReader
from sluice.broker.log.retention import enforce_retention
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import JOURNAL_TOPIC, NO_LEADER, Partition
from sluice.journal_events import AnyEvent, ClientEvent
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.log_validator import COORDINATOR
from sluice.protocol.records.record import Record

_ALL = EventFilter()
# Interval when a full page waits: at full rate a page is some 20 ms of events.
_HURRY_MS = 5
_NANOS_PER_MS = 1_000_000
# A page is one batch: 256 events, each with up to 16 topics of the longest names.
CONFIGS = {
    "cleanup.policy": "delete",
    "max.message.bytes": "16777216",
    "retention.bytes": "67108864",
    "segment.bytes": "16777216",
}
_MOST_REPLICAS = 3


class JournalTopic:
    def __init__(self, cluster: "Cluster", journal: Journal) -> None:
        self._cluster = cluster
        self._reader = JournalReader(journal, cluster.runtime.clock)
        self._after = 0
        self._publish_later(POLL_MS)
        self._partition()

    def _publish_later(self, delay_ms: float) -> None:
        self._cluster.runtime.scheduler.schedule_once(delay_ms, self._publish)

    def _publish(self) -> None:
        found = self._reader.read(self._after, _ALL, PAGE_ENTRIES, PAGE_ENTRIES)
        if found.events and self._write(found.events):
            self._after = found.after
        self._publish_later(_HURRY_MS if self._reader.last_seq - self._after >= PAGE_ENTRIES else POLL_MS)

    def _write(self, events: list[AnyEvent]) -> bool:
        partition = self._partition()
        leader = None if partition is None else self._cluster.leader_of(partition)
        if partition is None or leader is None:
            return False
        log, now_ms = partition.log, self._cluster.runtime.clock.wall_ms()
        batch = build_batch(record_of(offset, event) for offset, event in enumerate(events))
        result = log.append(memoryview(batch), now_ms, partition.leader_epoch, COORDINATOR)
        if result.error_code:
            return False
        enforce_retention(log, now_ms)  # the broker's own check, every five minutes, could be gigabytes too late
        leader.replicas.appended(partition)
        self._cluster.runtime.actions.complete()
        return True

    def _partition(self) -> Partition | None:
        if JOURNAL_TOPIC not in self._cluster.topics:
            replicas = min(_MOST_REPLICAS, len(self._cluster.brokers) - len(self._cluster.fenced))
            self._cluster.create(NewTopic(JOURNAL_TOPIC, 1, replicas, configs=CONFIGS))
        partition = self._cluster.metadata.partition(JOURNAL_TOPIC, 0)
        return None if partition is None or partition.leader == NO_LEADER else partition


def record_of(offset: int, event: AnyEvent) -> Record:
    key = event.client_id.encode() if isinstance(event, ClientEvent) else None
    return Record(offset, event.at_ns // _NANOS_PER_MS, key, msgspec.json.encode(event))

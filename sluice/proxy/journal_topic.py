"""The journal as the topic `__sluice_journal` of the upstream cluster, with `sluice.journal.topic=true`.

The topic and its records are those of a broker's journal topic. Nothing else of a proxy is written to the cluster.
"""

import asyncio
import logging
from collections.abc import Mapping

from sluice.broker.journal.reader import PAGE_ENTRIES, EventFilter, JournalReader
from sluice.broker.metadata.topic import JOURNAL_TOPIC
from sluice.broker.server.journal_topic import CONFIGS, record_of
from sluice.client.admin.admin import AdminClient
from sluice.client.admin.topics import NewTopic
from sluice.client.errors import ApiException, KafkaException
from sluice.client.producer.producer import Producer
from sluice.errors import SluiceError
from sluice.protocol.errors import ErrorCode

from .sasl.authentication import CLIENT_ID

log = logging.getLogger("sluice.proxy")

_ALL = EventFilter()
# A stop may take this long, for the last events.
_STOPS_WITHIN_S = 5


class UpstreamJournalTopic:
    def __init__(self, reader: JournalReader, upstream: Mapping[str, str]) -> None:
        """`upstream`: properties of a Kafka client, with `bootstrap.servers`."""
        self._reader = reader
        self._upstream = {"client.id": CLIENT_ID, **upstream}
        self._after = 0
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False

    async def start(self, admin: AdminClient) -> None:
        """Create the topic, unless it exists. Raises SluiceError."""
        try:
            created = await admin.create_topics([NewTopic(JOURNAL_TOPIC, 1, configs=CONFIGS)])
            error = created.errors().get(JOURNAL_TOPIC)
            exists = isinstance(error, ApiException) and error.code == ErrorCode.TOPIC_ALREADY_EXISTS
            if error is not None and not exists:
                raise error
        except KafkaException as error:
            raise SluiceError(f"sluice.journal.topic: topic {JOURNAL_TOPIC} of the upstream cluster: {error}") from None
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Write the last events, then end."""
        if self._task is None:
            return
        self._is_stopping = True
        await asyncio.wait([self._task], timeout=_STOPS_WITHIN_S)
        self._task.cancel()

    async def _run(self) -> None:
        async with Producer(self._upstream) as producer:
            is_last = False
            while not is_last:
                is_last = self._is_stopping
                while self._after < self._reader.last_seq:
                    await self._write(producer)
                if not is_last:
                    await self._reader.wait()

    async def _write(self, producer: Producer) -> None:
        """Write the next events in their order. Those that the cluster does not accept in time are lost."""
        page = self._reader.read(self._after, _ALL, PAGE_ENTRIES, PAGE_ENTRIES)
        self._after = page.after
        try:
            records = [record_of(offset, event) for offset, event in enumerate(page.events)]
            sent = [
                await producer.send(JOURNAL_TOPIC, each.value, key=each.key, partition=0, timestamp_ms=each.timestamp)
                for each in records
            ]
            await asyncio.gather(*sent)
        except KafkaException as error:
            log.warning("journal events were not written", extra={"events": len(page.events), "reason": str(error)})

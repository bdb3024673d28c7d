"""Processes that copy the topic in transactions: they consume as a group, and commit its offsets with their records.

Follows KIP-447: each instance has a transactional id of its own, and the group's generation fences it.
"""

from contextlib import suppress
from random import Random

from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.consumer import Consumer, TopicPartition
from sluice.client.producer import Producer

from . import clients
from .workload import PARTITIONS, Workload

COPIES = "copies"
GROUP = "copiers"
_POLL_MS = 300
_CLOSE_MS = 5000


async def copy(workload: Workload, transactional_id: str, process: str) -> None:
    """Copy records until the end, or until a transaction fails or is aborted; a successor continues."""
    random = Random(workload.random.random())
    common: dict[str, str | int] = {
        "bootstrap.servers": workload.bootstrap,
        "client.id": process,
        "request.timeout.ms": clients.REQUEST_TIMEOUT_MS,
    }
    consumer = Consumer(
        {
            **common,
            "group.id": GROUP,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "session.timeout.ms": clients.SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": 1000,
        },
        random=random,
    )
    producer = Producer(
        {
            **common,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": clients.TRANSACTION_TIMEOUT_MS,
            "delivery.timeout.ms": clients.DELIVERY_TIMEOUT_MS,
            "max.block.ms": clients.DELIVERY_TIMEOUT_MS,
        },
        random=random,
    )
    try:
        await producer.__aenter__()
        await clients.until_ended(producer.init_transactions)
        await consumer.__aenter__()
        consumer.subscribe([clients.TOPIC])
        while not workload.is_over:
            if not await _copy_some(workload, consumer, producer):
                return
    finally:
        for client in (producer, consumer):
            with suppress(*clients.ERRORS):
                await client.close(_CLOSE_MS)


async def _copy_some(workload: Workload, consumer: Consumer, producer: Producer) -> bool:
    """Copy what one poll returns in a transaction; return whether it was committed."""
    records = await consumer.poll(_POLL_MS)
    if not records:
        return True
    producer.begin_transaction()
    for record in records:
        await producer.send(COPIES, record.value, partition=record.partition)
    # Without the epoch, an isolated former leader would reset a later consumer, in Kafka as well.
    positions = {
        TopicPartition(clients.TOPIC, one.partition): OffsetAndMetadata(one.offset + 1, "", one.leader_epoch)
        for one in records
    }
    await producer.send_offsets_to_transaction(positions, consumer.group_metadata())
    if workload.random.random() < 0.2:
        await clients.until_ended(producer.abort_transaction)
        return False  # the position of the consumer is after the aborted records
    await clients.until_ended(producer.commit_transaction)
    return True


async def read_copies(bootstrap: str) -> tuple[dict[int, list[int]], dict[int, int]]:
    """Return the committed values of the copies by partition, and the committed offsets of the group."""
    common = {"bootstrap.servers": bootstrap, "group.id": GROUP, "enable.auto.commit": "false"}
    copies: dict[int, list[int]] = {}
    async with Consumer({**common, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}) as consumer:
        names = [TopicPartition(COPIES, index) for index in range(PARTITIONS)]
        consumer.assign(names)
        ends = await consumer.end_offsets(names)
        for name in names:
            copies.setdefault(name.partition, [])
            while await consumer.position(name) < ends[name]:
                for record in await consumer.poll(_POLL_MS):
                    copies.setdefault(record.partition, []).append(int(record.value or b""))
        committed = await consumer.committed([TopicPartition(clients.TOPIC, index) for index in range(PARTITIONS)])
    return copies, {name.partition: one.offset for name, one in committed.items() if one is not None}

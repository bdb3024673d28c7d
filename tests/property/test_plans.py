"""The predictions of a plan hold: real clients with the recommended quotas are throttled as predicted.

In virtual time, so nothing but the plan can be wrong: aiokafka is the client, the broker is the broker.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from random import Random

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from sluice import Broker, testing
from sluice.broker.journal.reader import JournalReader
from sluice.spark.charges.sources import splits_of
from sluice.spark.plan.analysis import Finding, Limits, Settings
from sluice.spark.plan.local_engine import run
from sluice.spark.plan.tables import FINDING, NEEDS, finding_of, read_table

CLIENTS = {"even": (500, 20_000, 1, 0.1), "bursty": (25, 40_000, 20, 3.0)}  # bursts, bytes, requests each, s between
READER = "reader"
READS, READ_BYTES = 40, 100_000


async def produce(bootstrap: str, client_id: str) -> None:
    bursts, nbytes, requests, pause_s = CLIENTS[client_id]
    random = Random(client_id)
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, client_id=client_id, max_batch_size=1 << 20, request_timeout_ms=60_000
    ) as producer:
        for _ in range(bursts):
            for _ in range(requests):
                await producer.send_and_wait(
                    client_id, bytes(random.randrange(nbytes // 2, nbytes * 3 // 2)), partition=0
                )
            await asyncio.sleep(random.expovariate(1 / pause_s))


async def fetch(bootstrap: str) -> None:
    """Fetch as fast as possible, with pauses."""
    random = Random(READER)
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="filler", max_batch_size=1 << 20) as producer:
        for _ in range(READS):
            await producer.send_and_wait(READER, bytes(READ_BYTES), partition=0)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, client_id=READER, auto_offset_reset="earliest", max_partition_fetch_bytes=1
    )
    await consumer.start()
    consumer.assign([TopicPartition(READER, 0)])
    for _ in range(READS):
        await consumer.getone()
        await asyncio.sleep(random.expovariate(1 / 0.4))
    await consumer.stop()


async def live(profile: str, quotas: Mapping[tuple[str, str], float]) -> JournalReader:
    """Run all clients; return the journal of the broker."""
    config: dict[str, str | float] = {"quota.profile": profile, "sluice.journal.events": 50_000}
    async with Broker(config=config) as broker:
        for (kind, client_id), quota in quotas.items():
            if kind == "Produce":
                broker.quota(client_id=client_id, produce=quota)
            else:
                broker.quota(client_id=client_id, fetch=quota)
        await asyncio.gather(*(produce(broker.bootstrap, client_id) for client_id in CLIENTS), fetch(broker.bootstrap))
        return broker.journal  # readable after the stop


def p99(whats: list[int]) -> int:
    return sorted(whats)[-(-len(whats) * 99 // 100) - 1]


@pytest.mark.parametrize("profile", ["by-version", "kip-13"])
def test_recommended_quotas_throttle_real_clients_as_predicted(profile: str, tmp_path: Path) -> None:
    file = tmp_path / "free.ndjson"
    free = testing.run(live(profile, {}))
    file.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in free.events()))
    asked = Settings((), (profile,), ("closed",), "client-id", Limits(400, 0.5))
    run(splits_of([str(file)]), asked, tmp_path / "out", lambda *_: None)
    needs: dict[tuple[str, str], Finding] = {
        (found.client.kind, found.client.client_id): found
        for found in map(finding_of, read_table(tmp_path / "out", NEEDS, FINDING))
        if found.client.client_id != "filler"
    }
    quotas = {whose: found.candidate.quota for whose, found in needs.items()}
    held = testing.run(live(profile, quotas))
    for (kind, client_id), found in needs.items():
        whats = [request.throttle_time_ms for request in held.requests(client_id=client_id, api=kind)]
        assert found.outcome.delay_p99_ms > 100, f"{client_id} is hardly throttled"
        assert p99(whats) == pytest.approx(found.outcome.delay_p99_ms, rel=0.1), client_id
        throttled = sum(throttle_ms > 0 for throttle_ms in whats) / len(whats)
        assert throttled == pytest.approx(found.outcome.throttled_share, abs=0.02), client_id

"""KIP-580, retry backoff, from the view of a failing broker: metadata and admin calls as in test_kip580.py.

With a real broker in virtual time; each test name has a statement's number.
"""

from random import Random

import pytest

from sluice import Broker
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import Close
from sluice.client.admin import AdminClient
from sluice.client.errors import TimeoutException
from sluice.client.producer import Producer
from tests.support.consuming import gaps, within

STEPS = [100, 200, 400, 800, 1000, 1000]
SEEDS = pytest.mark.parametrize("seed", range(3))


def times_of(broker: Broker, api: str) -> list[float]:
    """Return the request times in ms, including requests that faults left unanswered."""
    return [event.at_ns / 1e6 for event in broker.journal.events(kind="fault")] or [
        request.received_ns / 1e6 for request in broker.journal.requests(api=api)
    ]


@SEEDS
async def test_kip580_08_at_a_broker_unknown_topic_is_requested_with_growing_backoff(seed: int) -> None:
    async with Broker(config={"auto.create.topics.enable": "false"}, seed=seed) as broker:
        given: dict[str, str | int] = {"bootstrap.servers": broker.bootstrap, "max.block.ms": 6000}
        async with Producer(given, random=Random(seed)) as producer:
            with pytest.raises(TimeoutException, match="Topic nowhere not present in metadata after 6000 ms"):
                await producer.send("nowhere", b"v")
        found = gaps(times_of(broker, "Metadata"))
    assert within(found, STEPS), found


@SEEDS
async def test_kip580_09_at_a_broker_metadata_backoff_doubles_after_disconnects(seed: int) -> None:
    async with Broker(seed=seed) as broker:
        broker.faults.add(Close(), api="Metadata", times=6)
        given = {"bootstrap.servers": broker.bootstrap, "metadata.recovery.strategy": "none"}
        async with Producer(given, random=Random(seed)) as producer:
            await (await producer.send("t", b"v"))
        found = gaps(times_of(broker, "Metadata"))
    assert within(found, STEPS[:5], 50), found


@SEEDS
async def test_kip580_15_at_a_broker_admin_call_backoff_doubles(seed: int) -> None:
    async with Broker(seed=seed) as broker:
        broker.faults.add(Error("REQUEST_TIMED_OUT"), api="DescribeCluster", times=6)
        async with AdminClient({"bootstrap.servers": broker.bootstrap}, random=Random(seed)) as admin:
            await admin.describe_cluster()
        found = gaps([request.received_ns / 1e6 for request in broker.journal.requests(api="DescribeCluster")])
    assert within(found, STEPS), found

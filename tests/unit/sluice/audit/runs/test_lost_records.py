"""Acknowledged records that the log does not have."""

import pytest

from sluice import Broker
from sluice.audit.judge.model.observation import Callback
from sluice.audit.probes.probe import TOPIC
from sluice.audit.runs.probe_run import _lost
from sluice.broker.faults.actions.no_response import BlackHole
from sluice.client.producer import Producer
from sluice.errors import SluiceError

DELIVERED = [Callback(event="delivered", at_ns=0, record=record, partition=0) for record in (1, 2)]


async def with_record_1(broker: Broker) -> None:
    await broker.cluster.create_topic(TOPIC, partitions=1)
    async with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        await (await producer.send(TOPIC, b"1"))


async def test_acknowledged_record_that_is_not_in_the_log_is_lost() -> None:
    async with Broker() as broker:
        await with_record_1(broker)
        assert await _lost(broker, DELIVERED) == [2]


async def test_record_of_an_unreadable_log_is_not_reported_as_lost() -> None:
    async with Broker() as broker:
        await with_record_1(broker)
        broker.faults.add(BlackHole(), api="Fetch")
        with pytest.raises(SluiceError, match=f"cannot read the log of topic {TOPIC} within 60 s"):
            await _lost(broker, DELIVERED)

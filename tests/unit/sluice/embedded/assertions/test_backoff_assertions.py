"""Backoff assertions in virtual time: for our own conforming clients, and for requests that do not conform."""

import asyncio
from contextlib import suppress

import pytest

from sluice import Broker
from sluice.client.errors import KafkaException
from sluice.client.producer import Producer
from sluice.errors import ArgumentError
from sluice.faults import Close, Error


async def produce_for_10_s(broker: Broker) -> None:
    config: dict[str, str | int] = {
        "bootstrap.servers": broker.bootstrap,
        "client.id": "shop",
        "delivery.timeout.ms": 10_000,
    }
    config |= {"request.timeout.ms": 5_000, "max.block.ms": 10_000}
    with suppress(KafkaException):
        async with Producer(config) as producer:
            await (await producer.send("orders", b"one pizza"))


async def test_requests_are_checked_against_kip_580() -> None:
    async with Broker() as broker:
        await broker.cluster.create_topic("orders")
        broker.faults.add(Error("NOT_ENOUGH_REPLICAS"), api="Produce")
        await produce_for_10_s(broker)
        (verdict,) = broker.assert_backoff("shop")
        assert verdict.statement == "KIP-580/1"
        with pytest.raises(AssertionError) as raised:
            broker.assert_backoff("shop", settings={"retry.backoff.ms": 1000, "retry.backoff.max.ms": 5000})
        message = str(raised.value)
        assert message.startswith(
            "expected: client shop backs off as KIP-580 specifies, "
            "with retry.backoff.ms=1000, retry.backoff.max.ms=5000\n"
            "observed: produce orders-0@"
        )
        assert " deviates: " in message
        assert " ms, broker 1 #2: error 19\n" in message
        assert "\nits requests: " in message


async def test_connections_are_checked_against_kip_144() -> None:
    async with Broker() as broker:
        await broker.cluster.create_topic("orders")
        broker.faults.add(Close(), api="ApiVersions")
        await produce_for_10_s(broker)
        assert broker.assert_backoff("shop", 144)
        with pytest.raises(AssertionError, match=r"backoff\.ms=2000, .*\nobserved: connect shop to broker 1"):
            broker.assert_backoff("shop", 144, settings={"reconnect.backoff.ms": 2000})


async def test_too_few_observations_are_inconclusive() -> None:
    async with Broker() as broker:
        await broker.cluster.create_topic("orders")
        await broker.client("shop").send("orders", b"one pizza")
        with pytest.raises(AssertionError, match="observed: no retries\nits requests: "):
            broker.assert_backoff("shop")
        broker.faults.add(Error("NOT_ENOUGH_REPLICAS"), api="Produce", times=1)
        await broker.client("shop").send("orders", b"one pizza")
        with pytest.raises(AssertionError, match="inconclusive: too few waits: 1 after up to 1 failures in a row"):
            broker.assert_backoff("shop")
        with pytest.raises(AssertionError, match=r"no events of client shpo; .* Did you mean shop"):
            broker.assert_backoff("shpo")
        with pytest.raises(ArgumentError, match="kip: expected one of 580, 144"):
            broker.assert_backoff("shop", kip=91)
        await asyncio.sleep(0)

"""The journal of a proxy as a topic of the upstream cluster."""

import json
from typing import Any

import pytest

from sluice import Broker, Proxy, SluiceError, testing
from sluice.broker.metadata.topic import JOURNAL_TOPIC
from sluice.client.consumer import Consumer, TopicPartition
from sluice.client.errors import TimeoutException
from sluice.client.producer import Producer
from sluice.errors import WaitTimeoutError
from sluice.faults import Error

# Kafka's id of clients that may write to internal topics, which the topic is on a broker of our own.
_WRITER = "__admin_client"


def proxy_with_topic(upstream: Broker) -> Proxy:
    return Proxy(upstream.bootstrap, upstream_config={"client.id": _WRITER}, config={"sluice.journal.topic": True})


async def events_of(broker: Broker | Proxy, client_id: str = "reader") -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    settings = {"bootstrap.servers": broker.bootstrap, "auto.offset.reset": "earliest", "client.id": client_id}
    async with Consumer(settings) as consumer:
        consumer.assign([TopicPartition(JOURNAL_TOPIC, 0)])
        while records := await consumer.poll(1000):
            events += [json.loads(record.value or b"") for record in records]
            assert len(events) < 1000, "reading the topic adds no events"
    return events


def test_the_topic_has_all_events_in_their_order() -> None:
    async def main() -> list[dict[str, Any]]:
        async with Broker() as upstream:
            for client_id in ("first", "second"):  # the topic exists already when the second proxy starts
                async with proxy_with_topic(upstream) as proxy:
                    await proxy.client(client_id).send("orders", b"one pizza")
            return await events_of(upstream)

    events = testing.run(main())
    by_client = {name: [event for event in events if event["client_id"] == name] for name in ("first", "second")}
    assert {event["client_id"] for event in events} == {"", "first", "second"}, "not the proxy's own clients"
    for own in by_client.values():
        assert [event["seq"] for event in own] == sorted(event["seq"] for event in own)
        assert [event["api"] for event in own if event["kind"] == "request"][-1] == "Produce"
        assert own[-1]["kind"] == "connection-closed", "the event of the stop"


def test_reading_the_topic_through_the_proxy_adds_no_events() -> None:
    async def main() -> list[dict[str, Any]]:
        async with Broker() as upstream, proxy_with_topic(upstream) as proxy:
            await proxy.client("shop").send("orders", b"one pizza")
            return await events_of(proxy)

    fetches = [event for event in testing.run(main()) if event["kind"] == "request" and event["api"] == "Fetch"]
    assert fetches == []


def test_a_proxy_does_not_start_if_the_cluster_refuses_the_topic() -> None:
    async def main() -> None:
        async with Broker() as upstream:
            upstream.faults.add(Error("POLICY_VIOLATION"), api="CreateTopics")
            async with proxy_with_topic(upstream):
                pass

    refused = f"^sluice.journal.topic: topic {JOURNAL_TOPIC} of the upstream cluster: Request parameters do not satisfy"
    with pytest.raises(SluiceError, match=refused):
        testing.run(main())


def test_events_that_the_cluster_does_not_accept_are_reported(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = Producer.send

    async def refuse(*_: object, **__: object) -> None:
        raise TimeoutException("expired")

    async def main() -> list[dict[str, Any]]:
        async with Broker() as upstream:
            async with proxy_with_topic(upstream) as proxy:
                monkeypatch.setattr(Producer, "send", refuse)
                with pytest.raises(WaitTimeoutError):
                    await proxy.client("lost").receive("orders", timeout_s=1)
                monkeypatch.setattr(Producer, "send", send)
                await proxy.client("kept").send("orders", b"one pizza")
            return await events_of(upstream)

    events = testing.run(main())
    assert "kept" in {event["client_id"] for event in events}
    assert ("journal events were not written", "expired") in [
        (line.getMessage(), getattr(line, "reason", "")) for line in caplog.records
    ]

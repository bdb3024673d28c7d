"""The embedded client: sent records are received, in real and in virtual time."""

import pytest

from sluice import Broker


async def test_sent_records_are_received() -> None:
    async with Broker() as broker:
        await broker.cluster.create_topic("orders", 2)
        written = await broker.client("shop").send("orders", b"a", b"b", key=b"k", partition=1)
        assert [(one.partition, one.offset) for one in written] == [(1, 0), (1, 1)]
        received = await broker.client().receive("orders", 2)
        assert [(one.key, one.value) for one in received] == [(b"k", b"a"), (b"k", b"b")]
        assert broker.journal.requests(client_id="shop", api="Produce")
        assert broker.journal.requests(client_id="sluice-test", api="Fetch")


async def test_timeout_reports_the_number_of_received_records() -> None:
    async with Broker() as broker:
        await broker.client().send("orders", b"a")
        with pytest.raises(TimeoutError, match="after 2 s: 1 of 3 records of topic orders"):
            await broker.client().receive("orders", 3, timeout_s=2)

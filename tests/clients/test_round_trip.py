"""What real clients produce is what real clients read: keys, values, nulls, headers, timestamps, every compression."""

import pytest

from sluice.protocol.records.batch import iter_batches
from tests.support.broker_process import BrokerProcess
from tests.support.real_clients import CLIENTS, COMPRESSIONS, RealClient, Row
from tests.support.records import fetch, fetched_bytes
from tests.support.wire import WireClient

# In the past, apart, and not in order: whoever makes them up again cannot get these.
ROWS = [
    Row(b"key", b"value", (("header", b"\x00\xff"), ("header", b"again")), 1_600_000_000_000),
    Row(None, b"no key", (), 1_600_000_000_777),
    Row(b"tombstone", None, (), 1_500_000_000_001),
    Row(b"", b"", (("empty", b""),), 1_600_000_000_123),
    Row("ключ".encode(), "значение 🦜".encode(), (("ünïcödé", b"h"),), 1_600_000_000_124),
    *[
        Row(b"many", b"%d " % number * 500, (("n", b"%d" % number),), 1_600_000_001_000 + number)
        for number in range(50)
    ],
]

clients = pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])


def skip_if_missing(client: RealClient, compression: str) -> None:
    if (reason := client.missing(compression)) is not None:
        pytest.skip(reason)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@clients
def test_a_client_reads_back_what_it_produced(
    client: RealClient, compression: str, broker: BrokerProcess, topic: str
) -> None:
    skip_if_missing(client, compression)
    client.produce(broker.bootstrap, topic, compression, ROWS, False)
    assert client.consume(broker.bootstrap, topic, len(ROWS)) == ROWS
    assert COMPRESSIONS.index(compression) in stored_codecs(broker, topic), "it was compressed some other way"


def stored_codecs(broker: BrokerProcess, topic: str) -> set[int]:
    """How the batches of a topic are compressed."""
    with WireClient(broker.bootstrap) as wire:
        data = fetched_bytes(wire.ask(fetch(0, topic=topic), 11))
    return {header.compression for _, header in iter_batches(data)}


@pytest.mark.parametrize(
    "client", [client for client in CLIENTS if client.name != "kafka-python"], ids=lambda client: client.name
)
def test_a_header_without_a_value_stays_without(client: RealClient, broker: BrokerProcess, topic: str) -> None:
    rows = [Row(b"k", b"v", (("null", None), ("empty", b"")), 1_600_000_000_000)]  # kafka-python refuses to send it
    client.produce(broker.bootstrap, topic, "none", rows, False)
    assert [reader.consume(broker.bootstrap, topic, 1) for reader in CLIENTS] == [rows] * 3


@clients
def test_an_idempotent_producer_stores_each_record_once_and_in_order(
    client: RealClient, broker: BrokerProcess, topic: str
) -> None:
    client.produce(broker.bootstrap, topic, "none", ROWS, True)
    client.produce(broker.bootstrap, topic, "gzip", ROWS, True)
    assert client.consume(broker.bootstrap, topic, 2 * len(ROWS)) == ROWS * 2


@clients
def test_a_client_reads_what_all_others_produced(client: RealClient, broker: BrokerProcess, topic: str) -> None:
    written = [
        (producer, compression)
        for producer in CLIENTS
        for compression in COMPRESSIONS
        if producer.missing(compression) is None and client.missing(compression) is None
    ]
    assert {compression for _, compression in written} >= {"none", "gzip"}
    for producer, compression in written:
        producer.produce(broker.bootstrap, topic, compression, ROWS[:6], False)
    assert client.consume(broker.bootstrap, topic, 6 * len(written)) == ROWS[:6] * len(written)

"""Fetch by old clients: down-conversion, zstd, and errors."""

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.fetch import FetchRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import read_header
from sluice.protocol.records.legacy import iter_messages, read_message
from tests.support.records import batch, fetch, fetched, fetched_bytes, produce, records_of, values
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic
from tests.support.wire import error_codes


def messages(data: bytes) -> list[tuple[int, int, bytes | None]]:
    """Return magic, offset and value of the messages in a message set."""
    converted, view = [], memoryview(data)
    while view:
        size = 12 + int.from_bytes(view[8:12])
        converted += [(view[16], message.offset, message.value) for message in iter_messages(read_message(view[:size]))]
        view = view[size:]
    return converted


@pytest.mark.parametrize("compression", range(4), ids=["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("version", range(4))
def test_batches_are_down_converted_for_versions_up_to_3(
    topic: Topic, client: Client, version: int, compression: int
) -> None:
    client.call(produce(9, batch(b"a", None, b"c", compression=compression)), 9)
    client.call(produce(9, batch(b"d", compression=compression)), 9)
    magic = 1 if version >= 2 else 0
    converted = messages(fetched_bytes(client.call(fetch(0), version)))
    assert converted == [(magic, offset, value) for offset, value in enumerate([b"a", None, b"c", b"d"])]


@pytest.mark.parametrize("version", range(19))
def test_zstd_topic_requires_fetch_version_10(broker: VirtualBroker, version: int) -> None:
    topic = broker.topic(compression_type="zstd")
    client = broker.client()
    client.call(produce(9, batch(b"a")), 9)
    data = fetched(client.call(fetch(0, topic_id=topic.topic_id), version))
    if version >= 10:
        assert (data.error_code, values(records_of(data)), data.high_watermark) == (0, [b"a"], 1)
    else:
        assert (data.error_code, records_of(data)) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, b"")
        assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (-1, -1, -1)


@pytest.mark.parametrize("version", range(19))
def test_zstd_batch_of_a_producer_is_rejected_only_if_it_needs_down_conversion(
    topic: Topic, client: Client, version: int
) -> None:
    client.call(produce(9, batch(b"a", compression=4)), 9)
    data = fetched(client.call(fetch(0, topic_id=topic.topic_id), version))
    if version >= 4:
        assert (data.error_code, values(records_of(data))) == (0, [b"a"])
    else:
        assert (data.error_code, records_of(data)) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, b"")


@pytest.mark.parametrize("version", range(19))
@pytest.mark.parametrize("topic_config", [True, False], ids=["topic config", "broker config"])
def test_message_downconversion_enable_false_rejects_old_clients(version: int, topic_config: bool) -> None:
    if topic_config:
        broker = broker_with_topic(message_downconversion_enable="false")
    else:
        broker = broker_with_topic("log.message.downconversion.enable=false")
    client = broker.client()
    client.call(produce(9, batch(b"a")), 9)
    data = fetched(client.call(fetch(0, topic_id=broker.partition().topic.topic_id), version))
    expected = (0, True) if version >= 4 else (ErrorCode.UNSUPPORTED_VERSION, False)
    assert (data.error_code, bool(records_of(data))) == expected


def test_down_conversion_error_is_not_repeated_in_an_unchanged_session() -> None:
    client = broker_with_topic(compression_type="zstd").client()
    request = fetch(0)
    request.session_epoch = 0
    opened = client.call(request, 9)
    assert error_codes(opened) == [ErrorCode.UNSUPPORTED_COMPRESSION_TYPE]
    for epoch, expected in ((1, []), (2, [ErrorCode.UNSUPPORTED_COMPRESSION_TYPE])):
        request = FetchRequest(session_id=opened.session_id, session_epoch=epoch)
        assert error_codes(client.call(request, 9)) == expected, "down-conversion errors are not part of the session"
        client.call(produce(9, batch(b"a")), 9)


@pytest.mark.parametrize("version", range(4, 19))
def test_batches_are_returned_as_stored_from_version_4(topic: Topic, client: Client, version: int) -> None:
    sent = batch(b"a", b"b", compression=1)
    client.call(produce(9, sent), 9)
    data = fetched_bytes(client.call(fetch(0, topic_id=topic.topic_id), version))
    assert data[17:] == sent[17:], "only base offset, length and leader epoch differ from the producer's batch"
    assert read_header(data).partition_leader_epoch == 0

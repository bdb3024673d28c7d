"""Computed sizes of messages equal the sizes that the codec encodes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.protocol.apis.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from sluice.protocol.apis.header import RequestHeader
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.codec.compile import encoder
from sluice.protocol.message import Message
from sluice.spark.charges.from_request_log import fetch_response_size, produce_request_size

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=140)
few = settings(max_examples=settings().max_examples // 5)  # per version
RECORDS = st.none() | st.integers(0, 20_000)


def size(message: Message, version: int) -> int:
    parts: list[bytes | memoryview] = []
    encoder(type(message), version)(message, parts)
    return sum(map(len, parts))


@pytest.mark.parametrize("version", range(3, 14))
@few
@given(NAMES | st.none(), NAMES | st.none(), st.lists(st.tuples(NAMES, st.lists(RECORDS, max_size=3)), max_size=3))
def test_produce_request(
    version: int, client_id: str | None, transactional_id: str | None, topics: list[tuple[str, list[int | None]]]
) -> None:
    data = [
        TopicProduceData(
            name="" if version >= 13 else name,
            partition_data=[PartitionProduceData(records=None if each is None else bytes(each)) for each in partitions],
        )
        for name, partitions in topics
    ]
    request = ProduceRequest(transactional_id=transactional_id, topic_data=data)
    header = RequestHeader(request_api_version=version, client_id=client_id)
    expected = size(header, 2 if version >= 9 else 1) + size(request, version)
    assert produce_request_size(version, client_id, transactional_id, topics) == expected


@pytest.mark.parametrize("version", range(19))
@few
@given(
    st.lists(st.tuples(NAMES, st.lists(st.tuples(RECORDS, st.none() | st.integers(0, 200)), max_size=3)), max_size=3)
)
def test_fetch_response(version: int, topics: list[tuple[str, list[tuple[int | None, int | None]]]]) -> None:
    responses = [
        FetchableTopicResponse(
            topic="" if version >= 13 else name,
            partitions=[
                PartitionData(
                    records=None if nbytes is None else bytes(nbytes),
                    aborted_transactions=None if aborted is None or version < 4 else [AbortedTransaction()] * aborted,
                )
                for nbytes, aborted in partitions
            ],
        )
        for name, partitions in topics
    ]
    assert fetch_response_size(version, topics) == 4 + size(FetchResponse(responses=responses), version)

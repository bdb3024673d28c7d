"""The shorter way to read Produce requests and to write their answers gives what the generated functions give."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.errors import RemoteProtocolError
from sluice.protocol.apis.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from sluice.protocol.codec.compile import Encoder, M, decode_prefix, encoder
from sluice.protocol.codec.one_batch import one_batch_decoder, one_batch_encoder
from sluice.protocol.message import Message

VERSIONS = range(3, 14)
NAMES = st.sampled_from(("", "t", "orders", "käse", "n" * 126, "n" * 127, "n" * 128, "n" * 300))
TOPIC_IDS = st.sampled_from((b"0123456789abcdef", bytes(16)))


def rarely(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(st.none(), st.none(), st.none(), st.none(), strategy)


TAGS = rarely(st.just({99: b"new"}))
REQUESTS = st.builds(
    ProduceRequest,
    transactional_id=rarely(st.sampled_from(("", "tx"))),
    acks=st.sampled_from((-1, 0, 1)),
    timeout_ms=st.integers(-1, 2**31 - 1),
    topic_data=st.lists(
        st.builds(
            TopicProduceData,
            name=NAMES,
            topic_id=TOPIC_IDS,
            partition_data=st.lists(
                st.builds(
                    PartitionProduceData,
                    index=st.integers(-1, 3),
                    records=st.one_of(st.none(), st.sampled_from((0, 1, 126, 127, 128, 20_000)).map(bytes)),
                    unknown_tagged_fields=TAGS,
                ),
                max_size=2,
            ),
            unknown_tagged_fields=TAGS,
        ),
        max_size=2,
    ),
    unknown_tagged_fields=TAGS,
)
RESPONSES = st.builds(
    ProduceResponse,
    responses=st.lists(
        st.builds(
            TopicProduceResponse,
            name=NAMES,
            topic_id=TOPIC_IDS,
            partition_responses=st.lists(
                st.builds(
                    PartitionProduceResponse,
                    index=st.integers(-1, 3),
                    error_code=st.sampled_from((0, 2)),
                    base_offset=st.integers(-1, 2**40),
                    log_append_time_ms=st.integers(-1, 2**41),
                    log_start_offset=st.integers(-1, 2**40),
                    record_errors=rarely(st.just([BatchIndexAndErrorMessage(0, "bad")])).map(
                        lambda errors: errors or []
                    ),
                    error_message=rarely(st.sampled_from(("", "no"))),
                    current_leader=rarely(st.just(LeaderIdAndEpoch(1, 2))),
                    unknown_tagged_fields=TAGS,
                ),
                max_size=2,
            ),
            unknown_tagged_fields=TAGS,
        ),
        max_size=2,
    ),
    throttle_time_ms=st.integers(0, 1000),
    node_endpoints=rarely(st.just([NodeEndpoint(1, "h", 9092)])).map(lambda endpoints: endpoints or []),
    unknown_tagged_fields=TAGS,
)


def written(encode: Encoder[M], message: M) -> bytes:
    parts: list[bytes | memoryview] = []
    encode(message, parts)
    return b"".join(parts)


def outcome(read: Callable[[], tuple[Message, int]]) -> object:
    """The message and where it ends; or what is said to be wrong."""
    try:
        return read()
    except RemoteProtocolError as error:
        return str(error)


@settings(max_examples=60)
@given(
    version=st.sampled_from(VERSIONS),
    request=REQUESTS,
    cut=st.integers(-3, 8),
    behind=st.sampled_from((b"", b"\1" * 40)),
)
def test_requests_are_read_as_the_generated_function_reads_them(
    version: int, request: ProduceRequest, cut: int, behind: bytes
) -> None:
    body = written(encoder(ProduceRequest, version), request)
    end = 5 + len(body) - cut
    view = memoryview(bytes(5) + body + behind)
    ways = (one_batch_decoder(version), decode_prefix(ProduceRequest, version))
    short, general = (outcome(partial(way, view, 5, max(5, min(end, len(view))))) for way in ways)
    assert short == general


@settings(max_examples=60)
@given(version=st.sampled_from(VERSIONS), response=RESPONSES)
def test_answers_are_written_as_the_generated_function_writes_them(version: int, response: ProduceResponse) -> None:
    ways = (one_batch_encoder(version), encoder(ProduceResponse, version))
    short, general = (written(way, response) for way in ways)
    assert short == general


@pytest.mark.parametrize("version", range(7, 14))
def test_one_batch_goes_the_shorter_way(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object) -> None:
        raise AssertionError("it went the general way")

    monkeypatch.setattr("sluice.protocol.codec.one_batch.decode_prefix", lambda *args: refused)
    monkeypatch.setattr("sluice.protocol.codec.one_batch.encoder", lambda *args: refused)
    data = [PartitionProduceData(0, bytes(200))]
    request = ProduceRequest(None, 1, 1000, [TopicProduceData("orders", bytes(16), data)])
    body = written(encoder(ProduceRequest, version), request)
    assert one_batch_decoder(version)(memoryview(body), 0, len(body))[1] == len(body)
    answer = [PartitionProduceResponse(0, 0, 7, -1, 0)]
    assert written(one_batch_encoder(version), ProduceResponse([TopicProduceResponse("orders", bytes(16), answer)]))


@pytest.mark.parametrize("version", range(3, 7))
def test_older_versions_have_the_generated_functions(version: int) -> None:
    assert one_batch_decoder(version) is decode_prefix(ProduceRequest, version)
    assert one_batch_encoder(version) is encoder(ProduceResponse, version)

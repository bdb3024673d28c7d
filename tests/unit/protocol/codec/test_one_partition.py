"""The shorter way to read Fetch requests and to write their answers gives what the generated functions give."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.errors import RemoteProtocolError
from sluice.protocol.apis.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
    SnapshotId,
)
from sluice.protocol.codec.compile import Encoder, M, decode_prefix, encoder
from sluice.protocol.codec.one_partition import one_partition_decoder, one_partition_encoder
from sluice.protocol.message import Message

VERSIONS = range(19)
SHORT_VERSIONS = (4, 11, *range(12, 19))
NAMES = st.sampled_from(("", "t", "orders", "käse", "n" * 126, "n" * 127, "n" * 128, "n" * 300))
TOPIC_IDS = st.sampled_from((b"0123456789abcdef", bytes(16)))
OFFSETS = st.integers(-1, 2**40)
INTS = st.integers(-1, 2**31 - 1)


def rarely(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(st.none(), st.none(), st.none(), st.none(), strategy)


def rarely_any(value: object) -> st.SearchStrategy[object]:
    return rarely(st.just([value])).map(lambda found: found or [])


TAGS = rarely(st.just({99: b"new"}))
REQUESTS = st.builds(
    FetchRequest,
    cluster_id=rarely(st.just("cluster")),
    replica_id=st.sampled_from((-1, -1, 2)),
    replica_state=rarely(st.just(ReplicaState(2, 3))),
    max_wait_ms=INTS,
    min_bytes=INTS,
    max_bytes=INTS,
    isolation_level=st.sampled_from((0, 1)),
    session_id=INTS,
    session_epoch=INTS,
    topics=st.lists(
        st.builds(
            FetchTopic,
            topic=NAMES,
            topic_id=TOPIC_IDS,
            partitions=st.lists(
                st.builds(
                    FetchPartition,
                    partition=st.integers(-1, 3),
                    current_leader_epoch=INTS,
                    fetch_offset=OFFSETS,
                    last_fetched_epoch=INTS,
                    log_start_offset=OFFSETS,
                    partition_max_bytes=INTS,
                    replica_directory_id=st.sampled_from((bytes(16), bytes(16), b"0123456789abcdef")),
                    unknown_tagged_fields=TAGS,
                ),
                max_size=2,
            ),
            unknown_tagged_fields=TAGS,
        ),
        max_size=2,
    ),
    forgotten_topics_data=rarely_any(ForgottenTopic("t", bytes(16), [1])),
    rack_id=rarely(st.just("rack")).map(lambda rack: rack or ""),
    unknown_tagged_fields=TAGS,
)
RECORDS = st.one_of(
    st.lists(st.sampled_from((0, 1, 125, 126, 127, 16_382, 16_383, 16_384)).map(bytes), max_size=2),
    rarely(st.just(b"records")),
)
RESPONSES = st.builds(
    FetchResponse,
    throttle_time_ms=INTS,
    error_code=st.sampled_from((0, 70)),
    session_id=INTS,
    responses=st.lists(
        st.builds(
            FetchableTopicResponse,
            topic=NAMES,
            topic_id=TOPIC_IDS,
            partitions=st.lists(
                st.builds(
                    PartitionData,
                    partition_index=st.integers(-1, 3),
                    error_code=st.sampled_from((0, 1)),
                    high_watermark=OFFSETS,
                    last_stable_offset=OFFSETS,
                    log_start_offset=OFFSETS,
                    diverging_epoch=rarely(st.just(EpochEndOffset(1, 2))),
                    current_leader=rarely(st.just(LeaderIdAndEpoch(1, 2))),
                    snapshot_id=rarely(st.just(SnapshotId(1, 2))),
                    aborted_transactions=st.sampled_from((None, None, [], [AbortedTransaction(1, 2)])),
                    preferred_read_replica=st.integers(-1, 2),
                    records=RECORDS,
                    unknown_tagged_fields=TAGS,
                ),
                max_size=2,
            ),
            unknown_tagged_fields=TAGS,
        ),
        max_size=2,
    ),
    node_endpoints=rarely_any(NodeEndpoint(1, "h", 9092)),
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


@settings(max_examples=100)
@given(
    version=st.sampled_from(VERSIONS),
    request=REQUESTS,
    cut=st.integers(-3, 8),
    behind=st.sampled_from((b"", b"\1" * 90)),
)
def test_requests_are_read_as_the_generated_function_reads_them(
    version: int, request: FetchRequest, cut: int, behind: bytes
) -> None:
    body = written(encoder(FetchRequest, version), request)
    end = 5 + len(body) - cut
    view = memoryview(bytes(5) + body + behind)
    ways = (one_partition_decoder(version), decode_prefix(FetchRequest, version))
    short, general = (outcome(partial(way, view, 5, max(5, min(end, len(view))))) for way in ways)
    assert short == general


@settings(max_examples=100)
@given(version=st.sampled_from(VERSIONS), response=RESPONSES)
def test_answers_are_written_as_the_generated_function_writes_them(version: int, response: FetchResponse) -> None:
    ways = (one_partition_encoder(version), encoder(FetchResponse, version))
    short, general = (written(way, response) for way in ways)
    assert short == general


@pytest.mark.parametrize("version", SHORT_VERSIONS)
def test_one_partition_goes_the_shorter_way(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = FetchTopic("orders", b"0123456789abcdef", [FetchPartition(0, 5, 7, -1, -1, 1000)])
    request = FetchRequest(None, -1, None, 500, 1, 2000, 1, 3, 4, [topic])
    body = written(encoder(FetchRequest, version), request)
    expected = decode_prefix(FetchRequest, version)(memoryview(body), 0, len(body))

    def refused(*args: object) -> None:
        raise AssertionError("it went the general way")

    monkeypatch.setattr("sluice.protocol.codec.one_partition.decode_prefix", lambda *args: refused)
    monkeypatch.setattr("sluice.protocol.codec.one_partition.encoder", lambda *args: refused)
    assert one_partition_decoder(version)(memoryview(body), 0, len(body)) == expected
    answer = [PartitionData(0, 0, 9, 8, 0, None, None, None, None, -1, [b"records"])]
    response = FetchResponse(0, 0, 3, [FetchableTopicResponse("orders", bytes(16), answer)])
    assert b"records" in written(one_partition_encoder(version), response)


@pytest.mark.parametrize("version", sorted(set(VERSIONS) - set(SHORT_VERSIONS)))
def test_versions_that_hardly_anyone_asks_in_have_the_generated_functions(version: int) -> None:
    assert one_partition_decoder(version) is decode_prefix(FetchRequest, version)
    assert one_partition_encoder(version) is encoder(FetchResponse, version)

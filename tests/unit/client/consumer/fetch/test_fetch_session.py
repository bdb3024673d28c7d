"""Fetch sessions (KIP-227): what a request names, and what an answer makes of the session."""

import pytest

from sluice.client.consumer.fetch.fetch_session import FetchFrom, FetchSession
from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.errors import ErrorCode

P0, P1, P2 = (TopicPartition("t", index) for index in range(3))
ID, OTHER_ID = b"i" * 16, b"o" * 16


def at(offset: int, topic_id: bytes = ID) -> FetchFrom:
    return FetchFrom(topic_id, offset, 1000, 0)


def in_session() -> FetchSession:
    """A session of partitions 0 and 1, with the id 7."""
    session = FetchSession(1)
    session.next_request({P0: at(0), P1: at(0)})
    assert session.handle_response(0, 7, [P0, P1], 0)
    return session


def test_the_first_request_is_full_and_begins_a_session() -> None:
    session = FetchSession(1)
    request = session.next_request({P0: at(0), P1: at(5)})
    assert (request.session_id, request.epoch, dict(request.send)) == (0, 0, {P0: at(0), P1: at(5)})
    assert session.handle_response(0, 7, [P0, P1], 0)
    assert session.session_id == 7


def test_the_next_requests_name_only_what_changed() -> None:
    session = in_session()
    request = session.next_request({P0: at(3), P1: at(0)})
    assert (request.session_id, request.epoch) == (7, 1)
    assert (dict(request.send), dict(request.forget)) == ({P0: at(3)}, {})
    assert session.handle_response(0, 7, [], 0)
    request = session.next_request({P0: at(3), P2: at(1)})
    assert (request.epoch, dict(request.send), dict(request.forget)) == (2, {P2: at(1)}, {P1: ID})


def test_a_topic_that_was_made_anew_is_forgotten_and_added() -> None:
    request = in_session().next_request({P0: at(0, OTHER_ID), P1: at(0)})
    assert (dict(request.send), dict(request.forget)) == ({P0: at(0, OTHER_ID)}, {P0: ID})


@pytest.mark.parametrize(
    ("error", "session_id", "received", "usable", "following"),
    [
        pytest.param(0, 7, [], True, (7, 2), id="nothing new goes on"),
        pytest.param(0, 7, [P0], True, (7, 2), id="something new goes on"),
        pytest.param(0, 0, [P0], True, (0, 0), id="a session that the broker closed begins anew, and is believed"),
        pytest.param(0, 7, [P2], False, (7, 0), id="another partition closes it"),
        pytest.param(0, 8, [P0], False, (7, 0), id="another id closes it"),
        pytest.param(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [], False, (0, 0), id="an id that is gone begins anew"),
        pytest.param(ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [], False, (7, 0), id="a wrong epoch closes it"),
    ],
)
def test_an_incremental_answer(
    error: int, session_id: int, received: list[TopicPartition], usable: bool, following: tuple[int, int]
) -> None:
    session = in_session()
    session.next_request({P0: at(0), P1: at(0)})
    assert session.handle_response(error, session_id, received, 0) is usable
    request = session.next_request({P0: at(0), P1: at(0)})
    assert (request.session_id, request.epoch) == following


@pytest.mark.parametrize(
    ("session_id", "received", "throttle_ms", "usable", "following"),
    [
        pytest.param(7, [P0, P1], 0, True, (7, 1), id="an id is a session"),
        pytest.param(0, [P0, P1], 0, True, (0, 0), id="no id is none, and is believed"),
        pytest.param(0, [], 500, False, (0, 0), id="nothing at all is a throttled one"),
        pytest.param(7, [P0], 0, False, (0, 0), id="a partition too few is not believed"),
        pytest.param(7, [P0, P1, P2], 0, False, (0, 0), id="a partition too many is not believed"),
    ],
)
def test_a_full_answer(
    session_id: int, received: list[TopicPartition], throttle_ms: int, usable: bool, following: tuple[int, int]
) -> None:
    session = FetchSession(1)
    session.next_request({P0: at(0), P1: at(0)})
    assert session.handle_response(0, session_id, received, throttle_ms) is usable
    request = session.next_request({P0: at(0), P1: at(0)})
    assert (request.session_id, request.epoch) == following


def test_a_request_that_was_lost_makes_the_session_anew() -> None:
    session = in_session()
    session.next_request({P0: at(0), P1: at(0)})
    session.handle_error()
    request = session.next_request({P0: at(1)})
    assert (request.session_id, request.epoch, dict(request.send)) == (7, 0, {P0: at(1)})


def test_epochs_go_on_at_1_after_the_largest() -> None:
    session = in_session()
    session._epoch = 2**31 - 1
    session.next_request({P0: at(0), P1: at(0)})
    session.handle_response(0, 7, [], 0)
    assert session.next_request({P0: at(0), P1: at(0)}).epoch == 1

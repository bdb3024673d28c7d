"""Fetch sessions (KIP-227): the contents of requests, and the effect of responses."""

import pytest

from sluice.client.consumer.fetch.fetch_session import FetchFrom, FetchSession
from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.errors import ErrorCode

P0, P1, P2 = (TopicPartition("t", index) for index in range(3))
ID, OTHER_ID = b"i" * 16, b"o" * 16


def at(offset: int, topic_id: bytes = ID) -> FetchFrom:
    return FetchFrom(topic_id, offset, 1000, 0)


def in_session() -> FetchSession:
    """Return an established session 7 of partitions 0 and 1."""
    session = FetchSession(1)
    session.next_request({P0: at(0), P1: at(0)})
    assert session.handle_response(0, 7, [P0, P1], 0)
    return session


def test_first_request_is_full_and_starts_a_session() -> None:
    session = FetchSession(1)
    request = session.next_request({P0: at(0), P1: at(5)})
    assert (request.session_id, request.epoch, dict(request.send)) == (0, 0, {P0: at(0), P1: at(5)})
    assert session.handle_response(0, 7, [P0, P1], 0)
    assert session.session_id == 7


def test_incremental_requests_contain_only_changes() -> None:
    session = in_session()
    request = session.next_request({P0: at(3), P1: at(0)})
    assert (request.session_id, request.epoch) == (7, 1)
    assert (dict(request.send), dict(request.forget)) == ({P0: at(3)}, {})
    assert session.handle_response(0, 7, [], 0)
    request = session.next_request({P0: at(3), P2: at(1)})
    assert (request.epoch, dict(request.send), dict(request.forget)) == (2, {P2: at(1)}, {P1: ID})


def test_recreated_topic_is_forgotten_and_added() -> None:
    request = in_session().next_request({P0: at(0, OTHER_ID), P1: at(0)})
    assert (dict(request.send), dict(request.forget)) == ({P0: at(0, OTHER_ID)}, {P0: ID})


@pytest.mark.parametrize(
    ("error", "session_id", "received", "usable", "following"),
    [
        pytest.param(0, 7, [], True, (7, 2), id="no changes continues the session"),
        pytest.param(0, 7, [P0], True, (7, 2), id="a change continues the session"),
        pytest.param(0, 0, [P0], True, (0, 0), id="a session closed by the broker restarts and the response is used"),
        pytest.param(0, 7, [P2], False, (7, 0), id="an unexpected partition closes the session"),
        pytest.param(0, 8, [P0], False, (7, 0), id="another session id closes the session"),
        pytest.param(
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [], False, (0, 0), id="an unknown session id restarts the session"
        ),
        pytest.param(
            ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [], False, (7, 0), id="a wrong epoch closes the session"
        ),
    ],
)
def test_incremental_response(
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
        pytest.param(7, [P0, P1], 0, True, (7, 1), id="a session id starts a session"),
        pytest.param(0, [P0, P1], 0, True, (0, 0), id="no session id: sessionless, response used"),
        pytest.param(0, [], 500, False, (0, 0), id="empty response: throttled"),
        pytest.param(7, [P0], 0, False, (0, 0), id="missing partition: response dropped"),
        pytest.param(7, [P0, P1, P2], 0, False, (0, 0), id="unexpected partition: response dropped"),
    ],
)
def test_full_response(
    session_id: int, received: list[TopicPartition], throttle_ms: int, usable: bool, following: tuple[int, int]
) -> None:
    session = FetchSession(1)
    session.next_request({P0: at(0), P1: at(0)})
    assert session.handle_response(0, session_id, received, throttle_ms) is usable
    request = session.next_request({P0: at(0), P1: at(0)})
    assert (request.session_id, request.epoch) == following


def test_lost_request_restarts_the_session() -> None:
    session = in_session()
    session.next_request({P0: at(0), P1: at(0)})
    session.handle_error()
    request = session.next_request({P0: at(1)})
    assert (request.session_id, request.epoch, dict(request.send)) == (7, 0, {P0: at(1)})


def test_epoch_wraps_from_the_maximum_to_1() -> None:
    session = in_session()
    session._epoch = 2**31 - 1
    session.next_request({P0: at(0), P1: at(0)})
    session.handle_response(0, 7, [], 0)
    assert session.next_request({P0: at(0), P1: at(0)}).epoch == 1

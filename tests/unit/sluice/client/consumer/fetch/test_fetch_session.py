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


CHANGES = {
    "no changes continues the session": (0, 7, [], True, (7, 2)),
    "a change continues the session": (0, 7, [P0], True, (7, 2)),
    "a session closed by the broker restarts and the response is used": (0, 0, [P0], True, (0, 0)),
    "an unexpected partition closes the session": (0, 7, [P2], False, (7, 0)),
    "another session id closes the session": (0, 8, [P0], False, (7, 0)),
    "an unknown session id restarts the session": (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [], False, (0, 0)),
    "a wrong epoch closes the session": (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [], False, (7, 0)),
}


@pytest.mark.parametrize(("error", "session_id", "received", "usable", "following"), CHANGES.values(), ids=CHANGES)
def test_incremental_response(
    error: int, session_id: int, received: list[TopicPartition], usable: bool, following: tuple[int, int]
) -> None:
    session = in_session()
    session.next_request({P0: at(0), P1: at(0)})
    assert session.handle_response(error, session_id, received, 0) is usable
    request = session.next_request({P0: at(0), P1: at(0)})
    assert (request.session_id, request.epoch) == following


FULL = {
    "a session id starts a session": (7, [P0, P1], 0, True, (7, 1)),
    "no session id: sessionless, response used": (0, [P0, P1], 0, True, (0, 0)),
    "empty response: throttled": (0, [], 500, False, (0, 0)),
    "missing partition: response dropped": (7, [P0], 0, False, (0, 0)),
    "unexpected partition: response dropped": (7, [P0, P1, P2], 0, False, (0, 0)),
}


@pytest.mark.parametrize(("session_id", "received", "throttle_ms", "usable", "following"), FULL.values(), ids=FULL)
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

"""Fetch sessions (KIP-227): after a first, full request the broker remembers which partitions are wanted, and requests
and answers name only what changed. Kafka's FetchSessionHandler, one for each node.

    next request            session id, epoch    what comes of its answer
    full, a new session     0, 0                 an id: incremental from now on; 0: the broker has no room, full again
    incremental             id, 1, 2, ...        the same id; 0: the broker closed it, full again
    close, and a new one    id, 0                as a full one

FETCH_SESSION_ID_NOT_FOUND begins with 0, 0; any other error of the whole request, and one that was lost, closes the
session and makes a new one. A full request that was throttled is answered with nothing at all, which is no complaint.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sluice.client.errors import error_name
from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.errors import ErrorCode

log = logging.getLogger("sluice.client")

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
_LAST_EPOCH = 2**31 - 1


class FetchFrom(NamedTuple):
    """What is asked of one partition."""

    topic_id: bytes
    offset: int
    max_bytes: int
    leader_epoch: int


class SessionRequest(NamedTuple):
    """What the next request says."""

    session_id: int
    epoch: int
    send: Mapping[TopicPartition, FetchFrom]
    forget: Mapping[TopicPartition, bytes]  # topic ids

    @property
    def is_full(self) -> bool:
        return self.epoch == INITIAL_EPOCH


class FetchSession:
    """The session with one node."""

    __slots__ = ("_epoch", "_session_id", "node_id", "partitions")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self.partitions: dict[TopicPartition, FetchFrom] = {}  # as the broker knows them

    @property
    def session_id(self) -> int:
        """0: there is none."""
        return self._session_id

    def next_request(self, wanted: Mapping[TopicPartition, FetchFrom]) -> SessionRequest:
        """What to send so that the broker serves just these partitions, in this order."""
        before, self.partitions = self.partitions, dict(wanted)
        if self._epoch == INITIAL_EPOCH:
            return SessionRequest(self._session_id, INITIAL_EPOCH, wanted, {})
        send = {partition: what for partition, what in wanted.items() if before.get(partition) != what}
        forget = {
            partition: what.topic_id
            for partition, what in before.items()
            # a topic that was made anew is another one
            if partition not in wanted or wanted[partition].topic_id != what.topic_id
        }
        return SessionRequest(self._session_id, self._epoch, send, forget)

    def handle_response(
        self, error_code: int, session_id: int, partitions: Iterable[TopicPartition], throttle_time_ms: int
    ) -> bool:
        """Takes an answer; whether what it says of partitions can be used."""
        if error_code:
            log.info("fetch session error", extra={"node": self.node_id, "error": error_name(error_code)})
            if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = NO_SESSION
            self._epoch = INITIAL_EPOCH
            return False
        received = set(partitions)
        if self._epoch == INITIAL_EPOCH:
            return self._handle_full_response(session_id, received, throttle_time_ms)
        if not received <= self.partitions.keys() or session_id not in (NO_SESSION, self._session_id):
            self._log_mismatch(received)
            self.handle_error()
            return False
        if session_id == NO_SESSION:
            self._reset()
        else:
            self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1
        return True

    def handle_error(self) -> None:
        """The request was not answered: nobody knows what the broker took of it."""
        self._epoch = INITIAL_EPOCH

    def _handle_full_response(self, session_id: int, received: set[TopicPartition], throttle_time_ms: int) -> bool:
        if not received and throttle_time_ms > 0:
            self._reset()
            return False
        if received != self.partitions.keys():
            self._log_mismatch(received)
            self._reset()
            return False
        self._session_id = session_id
        self._epoch = INITIAL_EPOCH if session_id == NO_SESSION else 1
        return True

    def _reset(self) -> None:
        self._session_id, self._epoch = NO_SESSION, INITIAL_EPOCH

    def _log_mismatch(self, received: set[TopicPartition]) -> None:
        log.info("a fetch answer for other partitions", extra={"node": self.node_id, "told": len(received)})

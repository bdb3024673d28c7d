"""Fetch sessions (KIP-227; Kafka's FetchSessionHandler), one for each node.

    next request                session id, epoch    effect of the response
    full, a new session         0, 0                 an id: continue incrementally; 0: no room at the broker, full again
    incremental                 id, 1, 2, ...        the same id: continue; 0: closed by the broker, full again
    close, and a new session    id, 0                as for a full request

FETCH_SESSION_ID_NOT_FOUND restarts with 0, 0. Any other error of the whole request, or a lost request, closes the
session. The response to a throttled full request is empty, and creates no session.
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
    topic_id: bytes
    offset: int
    max_bytes: int
    leader_epoch: int


class SessionRequest(NamedTuple):
    session_id: int
    epoch: int
    send: Mapping[TopicPartition, FetchFrom]
    forget: Mapping[TopicPartition, bytes]

    @property
    def is_full(self) -> bool:
        return self.epoch == INITIAL_EPOCH


class FetchSession:
    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self.partitions: dict[TopicPartition, FetchFrom] = {}  # as in the broker's session

    @property
    def session_id(self) -> int:
        return self._session_id

    def next_request(self, wanted: Mapping[TopicPartition, FetchFrom]) -> SessionRequest:
        """Return a request after which the session contains exactly these partitions."""
        before, self.partitions = self.partitions, dict(wanted)
        if self._epoch == INITIAL_EPOCH:
            return SessionRequest(self._session_id, INITIAL_EPOCH, wanted, {})
        send = {
            partition: fetch_from for partition, fetch_from in wanted.items() if before.get(partition) != fetch_from
        }
        forget = {
            partition: fetch_from.topic_id
            for partition, fetch_from in before.items()
            if partition not in wanted or wanted[partition].topic_id != fetch_from.topic_id
        }
        return SessionRequest(self._session_id, self._epoch, send, forget)

    def handle_response(
        self, error_code: int, session_id: int, partitions: Iterable[TopicPartition], throttle_time_ms: int
    ) -> bool:
        """Process a response; return whether its partitions can be used."""
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
        log.info("fetch response for other partitions", extra={"node": self.node_id, "partitions": len(received)})

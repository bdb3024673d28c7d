"""Requests to the share coordinators, by the leaders of share partitions and the group coordinator.

Follows Kafka's DefaultStatePersister and PersisterStateManager: errors of a coordinator that moves are retried after
an exponential backoff. Calls stay in this process (broker/controller/inter_broker.py).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from sluice.broker.controller.broker_node import BrokerNode
from sluice.broker.controller.inter_broker import send_request
from sluice.broker.coordinator.common.coordinator_log import coordinator_of
from sluice.broker.metadata.topic import SHARE_GROUP_STATE_TOPIC
from sluice.broker.requests.context import Sliced, at_once
from sluice.protocol.errors import ErrorCode

from .coordinator import ShareCoordinator
from .persisted import Done, PartitionSummary, ShareErrors, SharePartitionId, ShareSummaries, StateWrite, failed_summary
from .state import ShareState

T = TypeVar("T")
_Request = Callable[[ShareCoordinator, Done], None]
# PersisterStateManager.REQUEST_BACKOFF_MS and MAX_FIND_COORD_ATTEMPTS; jitter as in Kafka's clients.
_BACKOFF_MS, _ATTEMPTS, _JITTER = 1_000, 5, 0.2
RETRIABLE = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


def _code(_: SharePartitionId, code: ErrorCode) -> ErrorCode:
    return code


class SharePersister:
    def __init__(self, host: BrokerNode, coordinator_on: Callable[[BrokerNode], ShareCoordinator]) -> None:
        self._host = host
        self._coordinator_on = coordinator_on

    # -- for the leaders of partitions ---------------------------------------------------------------------------------

    def read_state(
        self, key: SharePartitionId, leader_epoch: int, callback: Callable[[ErrorCode, ShareState | None], None]
    ) -> None:
        found: list[ShareState | None] = [None]

        def request(coordinator: ShareCoordinator, done: Done) -> None:
            def read(code: ErrorCode, state: ShareState | None) -> None:
                found[0] = state
                done(code)

            coordinator.read(key, leader_epoch, read)

        self._send(key, request, lambda code: callback(code, found[0]))

    def write_state(self, key: SharePartitionId, write: StateWrite, callback: Done) -> None:
        self._send(key, lambda coordinator, done: coordinator.write(key, write, done), callback)

    # -- for the group coordinator -------------------------------------------------------------------------------------

    def initialize_state(
        self,
        group_id: str,
        start_offsets: Mapping[bytes, Mapping[int, int]],
        state_epoch: int,
        callback: Callable[[ShareErrors], None],
        sliced: Sliced = at_once,
    ) -> None:
        def request(key: SharePartitionId, coordinator: ShareCoordinator, done: Done) -> None:
            coordinator.initialize(key, state_epoch, start_offsets[key.topic_id][key.partition], done)

        self._send_all(group_id, start_offsets, request, callback, _code, sliced)

    def delete_state(
        self,
        group_id: str,
        partitions: Mapping[bytes, Sequence[int]],
        callback: Callable[[ShareErrors], None],
        sliced: Sliced = at_once,
    ) -> None:
        def request(key: SharePartitionId, coordinator: ShareCoordinator, done: Done) -> None:
            coordinator.delete(key, done)

        self._send_all(group_id, partitions, request, callback, _code, sliced)

    def read_summary(
        self,
        group_id: str,
        partitions: Mapping[bytes, Sequence[int]],
        callback: Callable[[ShareSummaries], None],
        sliced: Sliced = at_once,
    ) -> None:
        found: dict[SharePartitionId, PartitionSummary] = {}

        def request(key: SharePartitionId, coordinator: ShareCoordinator, done: Done) -> None:
            found[key] = coordinator.read_summary(key)
            done(found[key].error)

        def summary(key: SharePartitionId, code: ErrorCode) -> PartitionSummary:
            read = found.pop(key, None)
            return failed_summary(code) if code or read is None else read

        self._send_all(group_id, partitions, request, callback, summary, sliced)

    def _send_all(
        self,
        group_id: str,
        partitions: Mapping[bytes, Mapping[int, int] | Sequence[int]],
        request: Callable[[SharePartitionId, ShareCoordinator, Done], None],
        callback: Callable[[Mapping[bytes, Mapping[int, T]]], None],
        result: Callable[[SharePartitionId, ErrorCode], T],
        sliced: Sliced,
    ) -> None:
        """Send a request for each partition; call back with all results."""
        results: dict[bytes, dict[int, T]] = {topic_id: {} for topic_id in partitions}
        missing = {
            SharePartitionId(group_id, topic_id, index): None
            for topic_id, some in partitions.items()
            for index in sliced(some)
        }
        if not missing:
            callback(results)

        def done(key: SharePartitionId, code: ErrorCode) -> None:
            results[key.topic_id][key.partition] = result(key, code)
            missing.pop(key, None)
            if not missing:
                callback(results)

        for key in sliced(list(missing)):
            self._send(key, partial(request, key), partial(done, key))

    # -- sending -------------------------------------------------------------------------------------------------------

    def _send(self, key: SharePartitionId, request: _Request, done: Done, attempt: int = 1) -> None:
        def responded(code: ErrorCode) -> None:
            if code in RETRIABLE and attempt < _ATTEMPTS:
                jitter = self._host.random.uniform(1 - _JITTER, 1 + _JITTER)
                again = partial(self._send_again, key, request, done, attempt + 1)
                self._host.scheduler.schedule_once(round(_BACKOFF_MS * 2 ** (attempt - 1) * jitter), again)
            else:
                done(code)

        coordinator = coordinator_of(self._host, SHARE_GROUP_STATE_TOPIC, key.coordinator_key)
        if coordinator is None:
            responded(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            send_request(self._host, coordinator, partial(request, self._coordinator_on(coordinator)), responded)

    def _send_again(self, key: SharePartitionId, request: _Request, done: Done, attempt: int) -> None:
        self._send(key, request, done, attempt)
        self._host.actions.complete()

"""The transactions of a client, from their first request to EndTxn.

A transaction begins with the first request that adds a partition or offsets to it. With KIP-890, that is a Produce.
"""

import msgspec

from sluice.journal_events import ConnectionClosed, Request
from sluice.protocol.errors import ErrorCode

from .domain import Domain, Handlers
from .measures.bursts import Burst
from .measures.examples import Examples
from .measures.fields import number

_NS_PER_MS = 1_000_000
# 2 per second: at a lower rate, the cost of a transaction does not matter.
_SINGLE, _SINGLE_SECONDS = 20, 10.0
_FENCED = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}
_ENDED = {*_FENCED, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
# An instance that is replaced is fenced once; a new version of an application is not started again in this time.
_FENCED_AGAIN, _FENCED_SECONDS = 2, 300.0
# A transaction that took this share of its timeout does not end in time when the application is a quarter slower.
NEAR_SHARE = 0.8
# Further transactional ids are not kept.
_MOST_IDS = 4096


class Transactional(msgspec.Struct):
    """The use of a transactional id by a client.

    timeout_ms: as requested; 0 if unknown
    began_ns: when its open transaction began; 0 without one
    records: number of records in it, as far as known
    is_fenced: whether a request has failed since the last InitProducerId because of a newer producer
    """

    timeout_ms: int = 0
    began_ns: int = 0
    records: int = 0
    connection: int = 0
    is_fenced: bool = False

    @property
    def timeout_ns(self) -> int:
        return self.timeout_ms * _NS_PER_MS


class Transactions(Domain):
    """The transactions of a client.

    ids: by transactional id
    single: transactions with one record, or only offsets
    several: number of the others
    near_timeout: transactions that took at least `NEAR_SHARE` of their timeout, and ended in time
    longest_share: the highest share of them
    timed_out: transactions that the broker had aborted when the client wanted to continue
    fenced: times that a newer producer with the same transactional id fenced the client
    invalid_timeouts: requested timeouts above the broker's maximum
    """

    def __init__(self) -> None:
        self.ids: dict[str, Transactional] = {}
        self.several = self.near_timeout = self.timed_out = 0
        self.longest_share = 0.0
        self.invalid_timeouts: set[int] = set()
        self.single, self.fenced = Burst(_SINGLE, _SINGLE_SECONDS), Burst(_FENCED_AGAIN, _FENCED_SECONDS)
        self.near_examples, self.timed_out_examples = Examples(), Examples()
        self.timeout_examples, self.left_open_examples = Examples(), Examples()
        self._left_open: dict[str, int] = {}  # by transactional id: when its connection closed

    def handlers(self) -> Handlers:
        return {
            "InitProducerId": self._init,
            "AddPartitionsToTxn": self._add,
            "AddOffsetsToTxn": self._add,
            "TxnOffsetCommit": self._add,
            "Produce": self._produce,
            "EndTxn": self._end,
            "connection-closed": self._closed,
        }

    @property
    def left_open(self) -> list[str]:
        """The transactional ids whose client disconnected with an open transaction, and did not return."""
        return sorted(self._left_open)

    def _id(self, event: Request) -> Transactional | None:
        found = self.ids.get(event.transactional_id)
        if found is None:
            if not event.transactional_id or len(self.ids) >= _MOST_IDS:
                return None
            found = self.ids[event.transactional_id] = Transactional()
        self._left_open.pop(event.transactional_id, None)
        return found

    def _init(self, event: Request) -> None:
        transactional = self._id(event)
        if transactional is None or event.rule_id:
            return
        timeout_ms = number(event.sent, "transaction_timeout_ms")
        if ErrorCode.INVALID_TRANSACTION_TIMEOUT in event.error_codes:
            self.invalid_timeouts.add(timeout_ms)
            self.timeout_examples.note(event)
        if event.error_codes:
            return
        transactional.timeout_ms, transactional.connection = timeout_ms, event.connection
        transactional.began_ns, transactional.is_fenced = 0, False

    def _add(self, event: Request) -> None:
        transactional = self._continued(event)
        if transactional is not None and event.api != "TxnOffsetCommit":
            transactional.connection = event.connection

    def _produce(self, event: Request) -> None:
        if not event.transactional_id:
            return
        transactional = self._continued(event)
        if transactional is None:
            return
        for each in event.partitions:
            # A number that is not known is not one.
            transactional.records += each.batch.records if each.batch is not None and each.batch.records >= 0 else 2
        transactional.records += event.partitions_left_off

    def _continued(self, event: Request) -> Transactional | None:
        """Return the id of a successful request in a transaction, which it may begin."""
        transactional = self._id(event)
        if transactional is None:
            return None
        if event.error_codes or event.answered_ns is None:
            self._failed(transactional, event)
            return None
        if not transactional.began_ns:
            transactional.began_ns, transactional.records = event.received_ns, 0
        return transactional

    def _failed(self, transactional: Transactional, event: Request) -> None:
        if _ENDED.isdisjoint(event.error_codes) or event.rule_id:
            return
        took_ns = event.received_ns - transactional.began_ns
        if transactional.began_ns and 0 < transactional.timeout_ns <= took_ns:
            self.timed_out += 1
            self.timed_out_examples.note(event)
        elif not transactional.is_fenced and not _FENCED.isdisjoint(event.error_codes):
            self.fenced.add(event, event.transactional_id)
        transactional.began_ns, transactional.is_fenced = 0, True

    def _end(self, event: Request) -> None:
        transactional = self._id(event)
        if transactional is None:
            return
        if event.error_codes:
            self._failed(transactional, event)
        if event.error_codes or event.answered_ns is None:
            return
        transactional.connection = event.connection
        if transactional.began_ns:
            self._ended(transactional, event)
        transactional.began_ns = 0

    def _ended(self, transactional: Transactional, event: Request) -> None:
        if transactional.records <= 1:
            self.single.add(event, event.connection)
        else:
            self.several += 1
        if transactional.timeout_ns:
            share = (event.received_ns - transactional.began_ns) / transactional.timeout_ns
            if share >= NEAR_SHARE:
                self.near_timeout += 1
                self.longest_share = max(self.longest_share, share)
                self.near_examples.note(event)

    def _closed(self, event: ConnectionClosed) -> None:
        if not event.by_client:
            return
        for name, transactional in self.ids.items():
            if transactional.began_ns and transactional.connection == event.connection:
                self._left_open[name] = event.at_ns
                self.left_open_examples.note(event)

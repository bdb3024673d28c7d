"""Requests of a transactional producer (TxnRequestHandler, TransactionalRequestResult)."""

from collections.abc import Callable
from enum import Enum

from sluice.client.errors import KafkaException
from sluice.client.network.in_flight import Request
from sluice.protocol.message import Message

FIND, INIT, ADD, END, BUMP = range(5)


class CoordinatorType(Enum):
    GROUP = 0
    TRANSACTION = 1


class Result:
    def __init__(self) -> None:
        self.is_done = False
        self.error: KafkaException | None = None
        self._listeners: list[Callable[[], None]] = []

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` at the end of the operation; immediately if it has ended."""
        if self.is_done:
            listener()
        else:
            self._listeners.append(listener)

    def end(self, error: KafkaException | None = None) -> None:
        if not self.is_done:
            self.is_done, self.error = True, error
            for listener in self._listeners:
                listener()


class TransactionRequest:
    def __init__(
        self,
        priority: int,
        build: Callable[[], Request],
        handle: "Callable[[TransactionRequest, Message, float], None]",
        *,
        coordinator: CoordinatorType | None = None,
        key: str = "",
        result: Result | None = None,
    ) -> None:
        """Without `coordinator`, the request goes to any broker."""
        self.priority = priority
        self.build = build
        self.handle = handle
        self.coordinator = coordinator
        self.key = key
        self.result = result or Result()
        self.ends_transaction = priority == END
        self.adds = priority == ADD and coordinator is CoordinatorType.TRANSACTION
        self.may_have_started = False  # whether it was sent and adds to the transaction
        self.next_attempt_ms = 0.0

"""How brokers find each other, whether they reach each other, and how one asks another: calls in one process stand for
requests here. As a request would, a call that cannot be answered ends: when the other broker stops, or when the time is
over that one broker gives another (AddPartitionsToTxnManager, InterBrokerSendThread).
"""

from collections.abc import Callable

from sluice.broker.metadata.topic import Partition
from sluice.broker.server.broker import Broker
from sluice.protocol.errors import ErrorCode
from sluice.purgatory.operation import DelayedOperation

# Kafka's request.timeout.ms.
REQUEST_TIMEOUT_MS = 30_000


def leader_known_to(broker: Broker, partition: Partition) -> Broker | None:
    """The broker that leads a partition, as far as this one has heard; None: nobody that is alive."""
    known = broker.known(partition)
    return None if known is None else broker.known_leader(known)


def reaches(broker: Broker, other: Broker) -> bool:
    """Whether an answer would come from the other one: neither is stopped or cut off."""
    controller = broker.cluster.controller_in_use
    if other is broker or controller is None:
        return True
    return controller.is_running(broker.node_id) and controller.is_running(other.node_id)


def ask(
    broker: Broker,
    other: Broker,
    question: Callable[[Callable[[ErrorCode], None]], None],
    done: Callable[[ErrorCode], None],
) -> None:
    """Calls `question(told)`, in which the other broker is to call `told(answer)`, now or later; then `done` with that
    answer, or with NETWORK_EXCEPTION where none arrives.
    """
    asked = _Asked(broker, other, done)
    if reaches(broker, other):
        question(asked.told)
        if not asked.completed:
            broker.produces.try_complete_else_watch(asked, [other])
    else:
        asked.force_complete()


class _Asked(DelayedOperation):
    """Waits for an answer of another broker, under that one; among the produce requests, most of which it is for."""

    __slots__ = ("_answer", "_broker", "_done", "_other")

    def __init__(self, broker: Broker, other: Broker, done: Callable[[ErrorCode], None]) -> None:
        super().__init__(REQUEST_TIMEOUT_MS)
        self._answer = ErrorCode.NETWORK_EXCEPTION
        self._broker = broker
        self._other = other
        self._done = done

    def told(self, answer: ErrorCode) -> None:
        """The answer, which does not arrive where one of the two is cut off meanwhile, or was not waited for."""
        if not self.completed and reaches(self._broker, self._other):
            self._answer = answer
            self.force_complete()

    def try_complete(self) -> bool:
        controller = self._broker.cluster.controller_in_use
        return controller is not None and controller.has_stopped(self._other.node_id) and self.force_complete()

    def on_complete(self) -> None:
        self._done(self._answer)

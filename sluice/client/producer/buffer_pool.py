"""The accounting of `buffer.memory`, with a fair queue of waiters (Kafka's BufferPool, without its buffers)."""

from collections import deque
from collections.abc import Callable


class Ticket:
    def __init__(self, size: int, granted: Callable[[], None]) -> None:
        self.size = size
        self.granted = granted
        self.is_granted = False


class BufferPool:
    def __init__(self, total: int) -> None:
        self.total = total
        self.available = total
        self._waiting: deque[Ticket] = deque()

    @property
    def is_exhausted(self) -> bool:
        """Whether a waiter exists; batches are then sent without lingering."""
        return bool(self._waiting)

    def take(self, size: int) -> bool:
        if self._waiting or size > self.available:
            return False
        self.available -= size
        return True

    def queue(self, size: int, granted: Callable[[], None]) -> Ticket:
        ticket = Ticket(size, granted)
        self._waiting.append(ticket)
        return ticket

    def leave(self, ticket: Ticket) -> None:
        if ticket.is_granted:
            self.give_back(ticket.size)
        else:
            self._waiting.remove(ticket)
            self._grant()

    def give_back(self, size: int) -> None:
        self.available += size
        self._grant()

    def release_waiters(self) -> None:
        for ticket in self._waiting:
            ticket.granted()

    def _grant(self) -> None:
        while self._waiting and self._waiting[0].size <= self.available:
            ticket = self._waiting.popleft()
            self.available -= ticket.size
            ticket.is_granted = True
            ticket.granted()

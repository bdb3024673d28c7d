"""`buffer.memory`: how much may wait to be sent, and who waits until there is room, in turn. Kafka's BufferPool, which
also keeps the buffers; here only the bytes are counted.
"""

from collections import deque
from collections.abc import Callable


class Ticket:
    """A place in the queue."""

    __slots__ = ("granted", "is_granted", "size")

    def __init__(self, size: int, granted: Callable[[], None]) -> None:
        self.size = size
        self.granted = granted
        self.is_granted = False


class BufferPool:
    """So many bytes."""

    __slots__ = ("_waiting", "available", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.available = total
        self._waiting: deque[Ticket] = deque()

    @property
    def is_exhausted(self) -> bool:
        """Whether somebody waits: what there is to send is then sent, full or not."""
        return bool(self._waiting)

    def take(self, size: int) -> bool:
        """Takes bytes, if they are there and nobody waits already."""
        if self._waiting or size > self.available:
            return False
        self.available -= size
        return True

    def queue(self, size: int, granted: Callable[[], None]) -> Ticket:
        """Waits for bytes; `granted` is called when they have been taken for who waits."""
        ticket = Ticket(size, granted)
        self._waiting.append(ticket)
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Waits no longer; gives back what was granted meanwhile."""
        if ticket.is_granted:
            self.give_back(ticket.size)
        else:
            self._waiting.remove(ticket)
            self._grant()

    def give_back(self, size: int) -> None:
        """The bytes are free again."""
        self.available += size
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._waiting[0].size <= self.available:
            ticket = self._waiting.popleft()
            self.available -= ticket.size
            ticket.is_granted = True
            ticket.granted()

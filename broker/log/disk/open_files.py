"""The files that are open at a time, over all partitions: one for each segment in use.

The least recently used goes first. A segment is asked to close its file only when another one opens its own. That is
the only work: a use is a flag, and a segment with that flag gets a second chance (as in the clock algorithm), for a
list in order of use would cost every append more than it saves.
"""

import resource
from typing import Protocol

# Of what the process may open; the rest is for connections.
_SHARE = 4
_AT_LEAST, _AT_MOST = 16, 4096


class UsesFile(Protocol):
    """A segment, as this sees it."""

    recently_used: bool

    def close_file(self) -> None:
        """Closes the file; the next use opens it again."""


class OpenFiles:
    """At most `limit` files are open."""

    __slots__ = ("_users", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._users: dict[UsesFile, None] = {}

    @classmethod
    def of_process(cls) -> "OpenFiles":
        """As many as the process's own limit (`ulimit -n`) leaves."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        share = _AT_MOST if soft == resource.RLIM_INFINITY else soft // _SHARE
        return cls(max(_AT_LEAST, min(share, _AT_MOST)))

    def __len__(self) -> int:
        return len(self._users)

    def opened(self, user: UsesFile) -> None:
        """Says that `user` has a file open now; others may have to close theirs."""
        self._users[user] = None
        while len(self._users) > self.limit:
            oldest = next(iter(self._users))
            del self._users[oldest]
            if oldest.recently_used and oldest is not user:
                oldest.recently_used = False
                self._users[oldest] = None
            elif oldest is not user:
                oldest.close_file()
            else:
                self._users[user] = None

    def closed(self, user: UsesFile) -> None:
        """Says that `user` closed its file by itself."""
        self._users.pop(user, None)

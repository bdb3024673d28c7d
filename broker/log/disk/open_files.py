"""The bound on open segment files, over all partitions: the file that was opened first is closed first."""

import resource
from typing import Protocol

# Share of the process's limit (`ulimit -n`); the rest is for connections.
_SHARE = 4
_AT_LEAST, _AT_MOST = 16, 4096


class UsesFile(Protocol):
    def close_file(self) -> None:
        """Close the file; the next use opens it again."""


class OpenFiles:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._users: dict[UsesFile, None] = {}

    @classmethod
    def of_process(cls) -> "OpenFiles":
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        share = _AT_MOST if soft == resource.RLIM_INFINITY else soft // _SHARE
        return cls(max(_AT_LEAST, min(share, _AT_MOST)))

    def __len__(self) -> int:
        return len(self._users)

    def opened(self, user: UsesFile) -> None:
        self._users[user] = None
        if len(self._users) > self.limit:
            oldest = next(iter(self._users))
            del self._users[oldest]
            oldest.close_file()

    def closed(self, user: UsesFile) -> None:
        self._users.pop(user, None)

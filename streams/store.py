"""Keyed stores in memory: bytes by bytes, as a dictionary is used.

    counts = ctx.store("counts")
    counts[b"to"] = b"%d" % (int(counts.get(b"to", b"0")) + 1)

What changes in a task's store is written to its changelog topic, by which it is restored wherever the task runs next
(Kafka's InMemoryKeyValueStore with its ChangeLoggingKeyValueBytesStore). A global table is only read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping

# Is told of each change: the key, and its value now; None: it is gone.
OnChange = Callable[[bytes, bytes | None], None]


class KeyValueStore(MutableMapping[bytes, bytes]):
    """A task's part of a store."""

    def __init__(self, on_change: OnChange) -> None:
        self._values: dict[bytes, bytes] = {}
        self._on_change = on_change

    def __getitem__(self, key: bytes) -> bytes:
        return self._values[key]

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._values[key] = value
        self._on_change(key, value)

    def __delitem__(self, key: bytes) -> None:
        del self._values[key]
        self._on_change(key, None)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def restore(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Takes what the changelog has, without telling it again."""
        apply(changes, self._values)


class GlobalTable(Mapping[bytes, bytes]):
    """All of a topic, its last value by key, in each runtime."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}

    def __getitem__(self, key: bytes) -> bytes:
        return self._values[key]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def update(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Takes what the topic has."""
        apply(changes, self._values)


def apply(changes: Iterable[tuple[bytes, bytes | None]], values: dict[bytes, bytes]) -> None:
    """Puts changes in force, one after the other."""
    for key, value in changes:
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value

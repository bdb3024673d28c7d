"""Keyed stores in memory: mappings of bytes to bytes.

    counts = ctx.store("counts")
    counts[b"to"] = b"%d" % (int(counts.get(b"to", b"0")) + 1)

Changes of a task's store are written to its changelog topic (Kafka's InMemoryKeyValueStore with its
ChangeLoggingKeyValueBytesStore). A global table is read-only.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping

OnChange = Callable[[bytes, bytes | None], None]


class KeyValueStore(MutableMapping[bytes, bytes]):
    """The part of a store that belongs to one task."""

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
        apply(changes, self._values)


class GlobalTable(Mapping[bytes, bytes]):
    """The last value of each key of a topic, complete in each runtime."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}

    def __getitem__(self, key: bytes) -> bytes:
        return self._values[key]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def update(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        apply(changes, self._values)


def apply(changes: Iterable[tuple[bytes, bytes | None]], values: dict[bytes, bytes]) -> None:
    for key, value in changes:
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value

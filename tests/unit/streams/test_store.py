"""Stores: a dictionary that tells its changes."""

import pytest

from sluice.streams.store import GlobalTable, KeyValueStore


def test_changes_are_told_and_what_is_restored_is_not() -> None:
    told: list[tuple[bytes, bytes | None]] = []
    store = KeyValueStore(lambda key, value: told.append((key, value)))
    store.restore([(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", None), (b"c", None)])
    assert dict(store) == {b"a": b"3"}
    assert told == []
    store[b"b"] = b"4"
    del store[b"a"]
    assert store.setdefault(b"b", b"5") == b"4"
    assert store.pop(b"b") == b"4"
    assert told == [(b"b", b"4"), (b"a", None), (b"b", None)]
    assert len(store) == 0


def test_what_is_not_there_cannot_be_deleted_and_is_not_told() -> None:
    told: list[tuple[bytes, bytes | None]] = []
    store = KeyValueStore(lambda key, value: told.append((key, value)))
    with pytest.raises(KeyError):
        del store[b"a"]
    assert told == []


def test_a_global_table_is_only_read() -> None:
    table = GlobalTable()
    table.update([(b"a", b"1"), (b"b", b"2"), (b"a", None)])
    assert dict(table) == {b"b": b"2"}
    assert table.get(b"a", b"nothing") == b"nothing"
    assert not hasattr(table, "__setitem__")

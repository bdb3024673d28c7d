"""State stores: dictionaries that report changes."""

import pytest

from sluice.streams.store import GlobalTable, KeyValueStore


def test_changes_are_reported_except_restored_ones() -> None:
    changes: list[tuple[bytes, bytes | None]] = []
    store = KeyValueStore(lambda key, value: changes.append((key, value)))
    store.restore([(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", None), (b"c", None)])
    assert dict(store) == {b"a": b"3"}
    assert changes == []
    store[b"b"] = b"4"
    del store[b"a"]
    assert store.setdefault(b"b", b"5") == b"4"
    assert store.pop(b"b") == b"4"
    assert changes == [(b"b", b"4"), (b"a", None), (b"b", None)]
    assert len(store) == 0


def test_deleting_a_missing_key_fails_without_a_change() -> None:
    changes: list[tuple[bytes, bytes | None]] = []
    store = KeyValueStore(lambda key, value: changes.append((key, value)))
    with pytest.raises(KeyError):
        del store[b"a"]
    assert changes == []


def test_global_table_is_read_only() -> None:
    table = GlobalTable()
    table.update([(b"a", b"1"), (b"b", b"2"), (b"a", None)])
    assert dict(table) == {b"b": b"2"}
    assert table.get(b"a", b"nothing") == b"nothing"
    assert not hasattr(table, "__setitem__")

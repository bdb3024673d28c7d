"""Combined state batches, coordinator keys, and the change of states by updates."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.coordinator.share.persisted import SharePartitionId, StateBatch
from sluice.broker.coordinator.share.state import combine, parse_coordinator_key

TOPIC_ID = bytes(range(16))
BATCH = st.builds(
    lambda first, size, state, count: StateBatch(first, first + size, state, count),
    *(st.integers(0, 30), st.integers(0, 12), st.sampled_from([0, 2, 4]), st.integers(1, 3)),
)


@given(st.lists(BATCH, max_size=12), st.integers(-1, 40))
def test_each_offset_has_the_highest_delivery_count_and_state(batches: Sequence[StateBatch], start: int) -> None:
    expected: dict[int, tuple[int, int]] = {}
    for first, last, state, count in batches:
        for offset in range(max(first, start), last + 1):
            expected[offset] = max(expected.get(offset, (0, 0)), (count, state))
    combined = combine(batches, start)
    assert {
        offset: (count, state) for first, last, state, count in combined for offset in range(first, last + 1)
    } == expected
    for one, following in itertools.pairwise(combined):
        assert one.last_offset < following.first_offset
        assert one.last_offset + 1 < following.first_offset or one[2:] != following[2:]


KEYS = {
    "valid": ("g:AAECAwQFBgcICQoLDA0ODw:7", SharePartitionId("g", TOPIC_ID, 7)),
    "a colon in the group": ("a:b:AAECAwQFBgcICQoLDA0ODw:7", SharePartitionId("a:b", TOPIC_ID, 7)),
    "no partition": ("g:AAECAwQFBgcICQoLDA0ODw", None),
    "invalid topic id": ("g:short:7", None),
    "negative partition": ("g:AAECAwQFBgcICQoLDA0ODw:-1", None),
    "no group": (":AAECAwQFBgcICQoLDA0ODw:7", None),
    "empty": ("", None),
}


@pytest.mark.parametrize(("key", "expected"), KEYS.values(), ids=KEYS)
def test_coordinator_keys(key: str, expected: SharePartitionId | None) -> None:
    assert parse_coordinator_key(key) == expected
    assert expected is None or expected.coordinator_key == key

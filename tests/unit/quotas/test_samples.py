"""Packed samples: values are read back bit for bit."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.quotas.samples import Sample, windows_of

INT64 = st.integers(-(2**63), 2**63 - 1)
SAMPLES = st.lists(st.builds(Sample, st.floats(allow_nan=False), INT64, INT64, INT64), min_size=1, max_size=12)


@given(SAMPLES)
def test_written_samples_are_read_back(samples: list[Sample]) -> None:
    windows = windows_of(11, 1000, 2**63, 12)
    ring = windows.new_ring()
    for slot, sample in reversed(list(enumerate(samples))):
        windows.put(ring, slot, sample)
    assert repr(windows.samples(ring, len(samples))) == repr(samples), "including the sign of a zero"
    assert windows.values(ring) == tuple(sample.value for sample in samples) + (0.0,) * (12 - len(samples))


def test_value_can_be_written_alone() -> None:
    windows = windows_of(2, 1000, 2**63, 3)
    ring = windows.new_ring()
    windows.put(ring, 1, Sample(1.0, 2, 3, 4))
    windows.put_value(ring, 1, -inf)
    assert windows.samples(ring, 2)[1] == Sample(-inf, 2, 3, 4)


@pytest.mark.parametrize("slots", [11, 12])
def test_statistics_with_equal_windows_share_one_layout(slots: int) -> None:
    assert windows_of(11, 1000, 2**63, slots) is windows_of(11, 1000, 2**63, slots)

"""Packed samples: what is put in comes out, slot by slot and to the last bit."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.quotas.samples import Sample, windows_of

INT64 = st.integers(-(2**63), 2**63 - 1)
SAMPLES = st.lists(st.builds(Sample, st.floats(allow_nan=False), INT64, INT64, INT64), min_size=1, max_size=12)


@given(SAMPLES)
def test_what_is_put_in_comes_out(samples: list[Sample]) -> None:
    windows = windows_of(11, 1000, 2**63, 12)
    ring = windows.new_ring()
    for slot, sample in reversed(list(enumerate(samples))):
        windows.put(ring, slot, sample)
    assert repr(windows.samples(ring, len(samples))) == repr(samples), "to the sign of a zero"
    assert windows.values(ring) == tuple(sample.value for sample in samples) + (0.0,) * (12 - len(samples))


def test_a_value_can_be_put_alone() -> None:
    windows = windows_of(2, 1000, 2**63, 3)
    ring = windows.new_ring()
    windows.put(ring, 1, Sample(1.0, 2, 3, 4))
    windows.put_value(ring, 1, -inf)
    assert windows.samples(ring, 2)[1] == Sample(-inf, 2, 3, 4)


@pytest.mark.parametrize("slots", [11, 12])
def test_statistics_that_cut_time_alike_share_how(slots: int) -> None:
    assert windows_of(11, 1000, 2**63, slots) is windows_of(11, 1000, 2**63, slots)

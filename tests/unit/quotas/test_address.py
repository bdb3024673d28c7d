"""Canonical forms of IP addresses."""

import pytest

from sluice.quotas.address import normal_address

ADDRESSES = [
    ("10.0.0.1", "10.0.0.1"),
    ("::1", "::1"),
    ("0:0:0::1", "::1"),
    ("FE80::A", "fe80::a"),
    ("::ffff:10.0.0.9", "10.0.0.9"),
    ("localhost", "127.0.0.1"),
    ("broker.example", None),
    ("10.0.0", None),
    ("", None),
]


@pytest.mark.parametrize(("name", "address"), ADDRESSES)
def test_canonical_address(name: str, address: str | None) -> None:
    assert normal_address(name) == address

"""Quota entities: the bucket that counts a client, and the quota that applies to it."""

import pytest

from sluice.quotas.entity import DEFAULT, Bucket, EmptyClientId, Name, QuotaEntity, QuotaTable, sanitize


def table_of(*entities: tuple[Name, Name], empty_client_id: EmptyClientId = "unlimited") -> QuotaTable:
    """Return a table in which the first entity has a quota of 1.0, the second of 2.0, and so on."""
    table = QuotaTable(empty_client_id)
    for bound, (user, client_id) in enumerate(entities, start=1):
        table.set(QuotaEntity(user, client_id), float(bound))
    return table


# All eight levels, most specific first. The first level that is set decides bucket and limit of client c of user u.
PRECEDENCE: list[tuple[tuple[Name, Name], Bucket]] = [
    (("u", "c"), ("u", "c")),
    (("u", DEFAULT), ("u", "c")),
    (("u", None), ("u", None)),
    ((DEFAULT, "c"), ("u", "c")),
    ((DEFAULT, DEFAULT), ("u", "c")),
    ((DEFAULT, None), ("u", None)),
    ((None, "c"), (None, "c")),
    ((None, DEFAULT), (None, "c")),
]


@pytest.mark.parametrize("first", range(8), ids=[f"{user} and {client}" for (user, client), _ in PRECEDENCE])
def test_most_specific_quota_decides_bucket_and_limit(first: int) -> None:
    table = table_of(*(entity for entity, _ in PRECEDENCE[first:]))
    bucket = table.bucket("u", "c")
    assert bucket == PRECEDENCE[first][1]
    assert table.limit(bucket) == 1.0


# Quotas, then the bucket and the limit of client c of user u.
BUCKETS: dict[str, tuple[list[tuple[Name, Name]], Bucket, float | None]] = {
    "without quotas, counted by client id": ([], (None, "c"), None),
    "client-id quotas count all users of a client id together": ([(None, "c")], (None, "c"), 1.0),
    "a quota of another client id does not apply": ([(None, "d")], (None, "c"), None),
    "an override takes precedence over the default": ([(None, DEFAULT), (None, "c")], (None, "c"), 2.0),
    "user quotas count all client ids of a user together": ([("u", None)], ("u", None), 1.0),
    "a user without a quota is still counted by user if any user quota exists": ([("v", None)], ("u", None), None),
    "pair quotas count each pair": ([("v", "d")], ("u", "c"), None),
    "a default for a user's clients gives each client its own bucket": ([("u", DEFAULT)], ("u", "c"), 1.0),
    "a user's quota takes precedence over a client id's": ([(None, "c"), ("u", None)], ("u", None), 2.0),
    "the default user's client is less specific than the user": ([(DEFAULT, "c"), ("u", None)], ("u", None), 2.0),
    "with quotas at several levels, a client without a match is counted by client id": (
        [("v", None), ("v", "c")],
        (None, "c"),
        None,
    ),
    "a client named <default> is not the default": ([(None, "<default>")], (None, "c"), None),
}


@pytest.mark.parametrize(("entities", "bucket", "limit"), BUCKETS.values(), ids=BUCKETS)
def test_bucket_and_limit(entities: list[tuple[Name, Name]], bucket: Bucket, limit: float | None) -> None:
    table = table_of(*entities)
    assert table.bucket("u", "c") == bucket
    assert table.limit(bucket) == limit


# Quotas, then the limit of a client without an id: in KIP-13, and in Kafka 2.0 and later.
EMPTY_CLIENT_IDS: dict[str, tuple[list[tuple[Name, Name]], float | None, float | None]] = {
    "the default": ([(None, DEFAULT)], 1.0, None),
    "its own quota before the default": ([(None, DEFAULT), (None, "")], 2.0, None),
    "the user's quota": ([("u", None)], 1.0, 1.0),
    "the default client of the user": ([("u", DEFAULT)], 1.0, None),
    "the user's quota, not the default client id's": ([(None, DEFAULT), ("u", None)], 2.0, 2.0),
    "the user's quota when the pair's is indistinguishable from it": ([("u", ""), ("u", None)], 1.0, 2.0),
}


@pytest.mark.parametrize(("entities", "shared", "kafka_2"), EMPTY_CLIENT_IDS.values(), ids=EMPTY_CLIENT_IDS)
def test_limit_of_a_client_with_an_empty_client_id(
    entities: list[tuple[Name, Name]], shared: float | None, kafka_2: float | None
) -> None:
    kip_13 = table_of(*entities, empty_client_id="shares_default")
    assert kip_13.limit(kip_13.bucket("u", "")) == shared
    later = table_of(*entities, empty_client_id="unlimited")
    assert later.limit(later.bucket("u", "")) == kafka_2


def test_level_without_quotas_is_no_longer_considered() -> None:
    table = table_of((None, "c"), ("u", None), ("v", None))
    assert table.bucket("u", "c") == ("u", None)
    table.set(QuotaEntity(user="u"), None)
    assert table.bucket("u", "d") == (None, "d"), "two levels: no user quota matches"
    table.set(QuotaEntity(client_id="c"), None)
    assert table.bucket("u", "d") == ("u", None), "one level: users"
    table.set(QuotaEntity(user="v"), None)
    assert not table
    assert table.bucket("u", "d") == (None, "d")


def test_setting_twice_counts_once_and_removing_an_unset_quota_does_nothing() -> None:
    table = table_of(("u", None), ("u", None))
    table.set(QuotaEntity(user="v"), None)
    table.set(QuotaEntity(client_id="c"), None)
    assert table.bucket("u", "c") == ("u", None)
    assert table.limit(("u", None)) == 2.0
    table.set(QuotaEntity(user="u"), None)
    assert not table


SANITIZED = {
    "letters, digits, dot, hyphen and underscore are unchanged": ("User_1.a-b", "User_1.a-b"),
    "characters that URLEncoder keeps or turns into a plus are encoded too": ("a *~+", "a%20%2A%7E%2B"),
    "a distinguished name": ("CN=ü, O=x", "CN%3D%C3%BC%2C%20O%3Dx"),
    "half a surrogate pair becomes a question mark": ("\ud800", "%3F"),
}


@pytest.mark.parametrize(("name", "expected"), SANITIZED.values(), ids=SANITIZED)
def test_sanitized_name(name: str, expected: str) -> None:
    assert sanitize(name) == expected

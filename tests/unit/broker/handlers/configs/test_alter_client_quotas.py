"""AlterClientQuotas: altered quotas apply from the next request."""

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from sluice.protocol.errors import ErrorCode
from tests.support.records import batch_of, fetch, produce
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic

P, C = "producer_byte_rate", "consumer_byte_rate"
Parts = list[tuple[str, str | None]]
GOLD: Parts = [("client-id", "gold")]
INVALID = ErrorCode.INVALID_REQUEST


def entry(parts: Parts, *ops: tuple[str, float | None]) -> EntryData:
    """Return quota operations for one entity; None removes a quota."""
    return EntryData(
        entity=[EntityData(entity_type=type_, entity_name=name) for type_, name in parts],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )


def alter(
    broker: VirtualBroker, *entries: EntryData, version: int = 1, validate_only: bool = False
) -> list[tuple[Parts, int, str | None]]:
    """Return entity, error code and message of each result."""
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    results = broker.client().call(request, version).entries
    return [
        ([(part.entity_type, part.entity_name) for part in result.entity], result.error_code, result.error_message)
        for result in results
    ]


def throttled_ms(client: Client) -> int:
    """Send a produce request of about 20,000 bytes and return its throttle time."""
    client.send(produce(9, batch_of(20_000)), 9)
    return client.response().throttle_time_ms


@pytest.mark.parametrize("version", range(2))
def test_new_quota_applies_from_the_next_request_and_counts_earlier_bytes(version: int) -> None:
    broker = broker_with_topic("quota.producer.default=1000000")
    client = broker.client("gold")
    assert [throttled_ms(client) for _ in range(2)] == [0, 0]
    assert alter(broker, entry(GOLD, (P, 1000.0)), version=version) == [(GOLD, 0, None)]
    # Three requests within ten seconds at 1,000 bytes/s: 60,000 bytes and their headers, less 10,000.
    assert 50_000 < throttled_ms(client) < 51_000
    alter(broker, entry(GOLD, (P, None)), version=version)
    broker.advance(60_000)
    assert throttled_ms(client) == 0


def test_user_quota_precedes_client_id_quota(topic: Topic, broker: VirtualBroker) -> None:
    alter(broker, entry(GOLD, (P, 1_000_000.0)), entry([("user", "ANONYMOUS")], (P, 1000.0)))
    assert throttled_ms(broker.client("gold")) > 0


def test_fetch_quota_is_separate_from_the_produce_quota() -> None:
    broker = VirtualBroker("quota.profile=kafka-4.4")
    topic = broker.topic()
    alter(broker, entry([("client-id", None)], (C, 1000.0)))
    client = broker.client("gold")
    assert [throttled_ms(client) for _ in range(2)] == [0, 0]
    client.send(fetch(0, topic_id=topic.topic_id), 13)
    assert client.response().throttle_time_ms > 0


def test_validate_only_changes_no_quota(broker: VirtualBroker) -> None:
    good, bad = entry(GOLD, (P, 5.0)), entry([("user", "u")], (P, 0.5))
    rejected = ([("user", "u")], INVALID, f"{P} cannot be a fractional value.")
    assert alter(broker, good, bad, validate_only=True) == [(GOLD, 0, None), rejected]
    assert not broker.broker.quotas.produce.quotas_enabled


def test_rejected_entity_does_not_affect_the_others(topic: Topic, broker: VirtualBroker) -> None:
    bad, good = entry([("user", "u")], (P, 5.0), ("x", 1.0)), entry(GOLD, (P, 1000.0))
    assert alter(broker, bad, good) == [([("user", "u")], INVALID, "Invalid configuration key x"), (GOLD, 0, None)]
    assert throttled_ms(broker.client("gold")) > 0


DUPLICATES = {
    "duplicate entity": ([entry(GOLD, (P, 1000.0)), entry(GOLD, (P, 5e9))], "{client-id=gold}"),
    "duplicate key": ([entry(GOLD, (P, 1000.0), (P, 5e9))], "{client-id=gold}"),
    "duplicate entity in another order": (
        [entry([("user", None), *GOLD], (P, 1000.0)), entry([*GOLD, ("user", None)], (P, 5e9))],
        "{client-id=gold, user=null}",
    ),
}


@pytest.mark.parametrize(("entries", "entity"), DUPLICATES.values(), ids=DUPLICATES)
def test_duplicate_entity_returns_one_error_and_the_first_value_applies(entries: list[EntryData], entity: str) -> None:
    broker = broker_with_topic()
    ((_, code, message),) = alter(broker, *entries)
    assert (code, message) == (INVALID, f"Ignoring duplicate entity ClientQuotaEntity(entries={entity})")
    assert (throttled_ms(broker.client("gold")) > 0) == (len(entries) == 2)


def test_last_value_of_a_duplicate_entity_type_counts() -> None:
    assert alter(VirtualBroker(), entry([("user", "u"), ("user", "w")], (P, 5.0))) == [([("user", "w")], 0, None)]

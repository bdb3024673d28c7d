"""AlterClientQuotas: what is set holds from the next request on, as one of Kafka's versions would have it."""

import pytest

from sluice.protocol.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from sluice.protocol.errors import ErrorCode
from tests.support.records import batch_of, fetch, produce
from tests.support.virtual_broker import Client, VirtualBroker

P, C = "producer_byte_rate", "consumer_byte_rate"
Parts = list[tuple[str, str | None]]
GOLD: Parts = [("client-id", "gold")]
SIZE = 20_000


def entry(parts: Parts, *ops: tuple[str, float | None]) -> EntryData:
    """Quotas of one entity; None removes one."""
    return EntryData(
        entity=[EntityData(entity_type=type_, entity_name=name) for type_, name in parts],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )


def alter(
    broker: VirtualBroker, *entries: EntryData, version: int = 1, validate_only: bool = False
) -> list[tuple[Parts, int, str | None]]:
    """Entity, error code and message of each result."""
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    results = broker.client().ask(request, version).entries
    return [
        ([(part.entity_type, part.entity_name) for part in result.entity], result.error_code, result.error_message)
        for result in results
    ]


def throttled_ms(client: Client, size: int = SIZE) -> int:
    """How long a produce request of about `size` bytes is made to wait."""
    client.send(produce(9, batch_of(size)), 9)
    return client.answer().throttle_time_ms


@pytest.mark.parametrize("version", range(2))
def test_a_quota_holds_from_the_next_request_on_and_what_was_used_counts(version: int) -> None:
    broker = VirtualBroker("quota.producer.default=1000000")
    broker.topic()
    client = broker.client("gold")
    assert [throttled_ms(client) for _ in range(2)] == [0, 0]
    assert alter(broker, entry(GOLD, (P, 1000.0)), version=version) == [(GOLD, 0, None)]
    # Three requests in ten seconds' worth of 1,000 bytes/s: 60,000 bytes and their headers, less 10,000.
    assert 50_000 < throttled_ms(client) < 51_000
    alter(broker, entry(GOLD, (P, None)), version=version)
    broker.advance(60_000)
    assert throttled_ms(client) == 0


def test_a_quota_of_the_user_goes_before_one_of_the_client_id() -> None:
    broker = VirtualBroker()
    broker.topic()
    alter(broker, entry(GOLD, (P, 1_000_000.0)), entry([("user", "ANONYMOUS")], (P, 1000.0)))
    assert throttled_ms(broker.client("gold")) > 0


def test_a_quota_of_fetches_is_one_of_its_own() -> None:
    broker = VirtualBroker("quota.profile=kafka-4.4")
    topic = broker.topic()
    alter(broker, entry([("client-id", None)], (C, 1000.0)))
    client = broker.client("gold")
    assert [throttled_ms(client) for _ in range(2)] == [0, 0]
    client.send(fetch(0, topic_id=topic.topic_id), 13)
    assert client.answer().throttle_time_ms > 0


def test_where_only_validation_is_asked_for_nothing_is_set() -> None:
    broker = VirtualBroker()
    good, bad = entry(GOLD, (P, 5.0)), entry([("user", "u")], (P, 0.5))
    expected = (ErrorCode.INVALID_REQUEST, f"{P} cannot be a fractional value.")
    assert alter(broker, good, bad, validate_only=True) == [(GOLD, 0, None), ([("user", "u")], *expected)]
    assert not broker.broker.quotas.produce.quotas_enabled


def test_an_entity_that_is_refused_leaves_the_others_be() -> None:
    broker = VirtualBroker()
    broker.topic()
    bad, good = entry([("user", "u")], (P, 5.0), ("x", 1.0)), entry(GOLD, (P, 1000.0))
    assert alter(broker, bad, good) == [
        ([("user", "u")], ErrorCode.INVALID_REQUEST, "Invalid configuration key x"),
        (GOLD, 0, None),
    ]
    assert throttled_ms(broker.client("gold")) > 0


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        pytest.param([entry(GOLD, (P, 1000.0)), entry(GOLD, (P, 5e9))], "{client-id=gold}", id="an entity twice"),
        pytest.param([entry(GOLD, (P, 1000.0), (P, 5e9))], "{client-id=gold}", id="a key twice"),
        pytest.param(
            [entry([("user", None), *GOLD], (P, 1000.0)), entry([*GOLD, ("user", None)], (P, 5e9))],
            "{client-id=gold, user=null}",
            id="an entity twice, in another order",
        ),
    ],
)
def test_what_comes_twice_has_one_answer_an_error_and_holds_as_it_first_came(
    entries: list[EntryData], words: str
) -> None:
    broker = VirtualBroker()
    broker.topic()
    ((_, code, message),) = alter(broker, *entries)
    assert (code, message) == (
        ErrorCode.INVALID_REQUEST,
        f"Ignoring duplicate entity ClientQuotaEntity(entries={words})",
    )
    assert (throttled_ms(broker.client("gold")) > 0) == (len(entries) == 2)


def test_of_a_type_that_comes_twice_in_an_entity_the_last_holds() -> None:
    assert alter(VirtualBroker(), entry([("user", "u"), ("user", "w")], (P, 5.0))) == [([("user", "w")], 0, None)]

"""Explanations of a throttled client: the matching entity, the samples, and the arithmetic of the last delay."""

import pytest

from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.explain import Candidate, Delay, QuotaExplanation, SampleSeen, explain
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.quotas.mutation_quota import ControllerMutationQuotaManager
from sluice.quotas.request_quota import ClientRequestQuotaManager

EVERYONE = QuotaEntity(client_id=DEFAULT)
ALICE = QuotaEntity(user="alice")


def manager_with(*quotas: tuple[QuotaEntity, float]) -> ClientQuotaManager:
    manager = ClientQuotaManager("Produce", QuotaConfig(), QuotaTable("unlimited"))
    for entity, bound in quotas:
        manager.set_quota(entity, bound)
    return manager


def explained(
    manager: ClientQuotaManager, now_ms: int = 0, user: str = "alice", client_id: str = "c"
) -> QuotaExplanation:
    (explanation,) = explain([manager], user, client_id, now_ms)
    return explanation


def last_delay(found: QuotaExplanation) -> Delay:
    assert found.last_delay is not None
    return found.last_delay


def test_explanation_of_the_kip_13_example() -> None:
    manager = manager_with((EVERYONE, 5e6))
    for now_ms in range(0, 9000, 1000):
        manager.record("alice", "c", 5e6, now_ms)
    assert manager.record("alice", "c", 15e6, 9000) == 2000
    found = explained(manager, 9000)
    assert (found.kind, found.unit) == ("Produce", "bytes")
    assert (found.bound, found.rate, found.window_size_ms) == (5e6, 6e6, 10_000)
    assert found.arithmetic == "60,000,000 bytes / 10.000 s = 6,000,000 bytes/s"
    arithmetic = "(6,000,000 bytes/s - 5,000,000 bytes/s) / 5,000,000 bytes/s * 10,000 ms = 2,000 ms"
    assert last_delay(found).arithmetic == arithmetic
    assert found.samples[-1] == SampleSeen(9000, 9000, 1, 15e6, counts=True)
    assert len(found.samples) == 10


def test_warm_sensor_explains_3_s_for_the_same_burst() -> None:
    manager = manager_with((EVERYONE, 5e6))
    for now_ms in range(0, 20_000, 1000):
        manager.record("alice", "c", 5e6, now_ms)
    assert manager.record("alice", "c", 15e6, 20_000) == 3000
    found = explained(manager, 20_000)
    assert found.arithmetic == "65,000,000 bytes / 10.000 s = 6,500,000 bytes/s", "eleven samples over ten seconds"
    arithmetic = "(6,500,000 bytes/s - 5,000,000 bytes/s) / 5,000,000 bytes/s * 10,000 ms = 3,000 ms"
    assert last_delay(found).arithmetic == arithmetic


CANDIDATES: dict[str, tuple[list[tuple[QuotaEntity, float]], str, tuple[str | None, str | None], str]] = {
    "the default of client ids": (
        [(EVERYONE, 1.0)],
        "None <default>",
        (None, "c"),
        "all quotas are for client ids: each client id is counted separately",
    ),
    "a user before a client id": (
        [(EVERYONE, 1.0), (ALICE, 2.0)],
        "alice None",
        ("alice", None),
        "quotas are set at several levels: the most specific match applies",
    ),
    "the default user": (
        [(QuotaEntity(user=DEFAULT), 1.0)],
        "<default> None",
        ("alice", None),
        "all quotas are for users: each user is counted separately",
    ),
    "both": (
        [(QuotaEntity("alice", DEFAULT), 1.0)],
        "alice <default>",
        ("alice", "c"),
        "all quotas are for pairs of user and client id: each pair is counted separately",
    ),
}


@pytest.mark.parametrize(("quotas", "holds", "bucket", "why"), CANDIDATES.values(), ids=CANDIDATES)
def test_matching_entity_and_reason(
    quotas: list[tuple[QuotaEntity, float]], holds: str, bucket: tuple[str | None, str | None], why: str
) -> None:
    found = explained(manager_with(*quotas))
    assert [f"{candidate.user} {candidate.client_id}" for candidate in found.candidates] == [
        "alice c",
        "alice <default>",
        "alice None",
        "<default> c",
        "<default> <default>",
        "<default> None",
        "None c",
        "None <default>",
    ]
    assert [f"{each.user} {each.client_id}" for each in found.candidates if each.holds] == [holds]
    assert (found.user, found.client_id) == bucket
    assert found.why == why
    assert (found.rate, found.samples, found.last_delay) == (None, [], None), "nothing was recorded"


def test_explanation_without_quotas() -> None:
    found = explained(manager_with())
    assert found.why == "no quota of this kind is set, so nothing is counted"
    assert (found.bound, found.rate) == (None, None)


def test_client_without_a_matching_quota_has_no_limit() -> None:
    found = explained(manager_with((QuotaEntity(client_id="other"), 5.0)))
    assert (found.bound, [each for each in found.candidates if each.holds]) == (None, [])
    assert found.candidates[-2] == Candidate(None, "c", None)


def test_client_without_an_id_is_unlimited_under_kafka_2_semantics() -> None:
    found = explained(manager_with((EVERYONE, 5.0)), client_id="")
    assert (found.bound, found.why) == (
        None,
        "the client has no client id, so client-id quotas do not apply (Kafka 2.0 and later)",
    )


def test_stale_samples_are_listed_but_not_counted() -> None:
    manager = manager_with((EVERYONE, 5.0))
    manager.record("alice", "c", 20.0, 0)
    manager.record("alice", "c", 30.0, 5_000)
    found = explained(manager, 12_000)
    assert [(sample.value, sample.counts) for sample in found.samples] == [(20.0, False), (30.0, True)]
    assert (found.rate, found.arithmetic) == (3.0, "30 bytes / 10.000 s = 3 bytes/s")


def test_explaining_has_no_side_effects() -> None:
    explained_manager, alone = manager_with((EVERYONE, 100.0)), manager_with((EVERYONE, 100.0))
    now_ms = 0
    for burst in range(30):
        for at_ms in range(now_ms, now_ms + burst * burst * 23, 997):
            explained(explained_manager, at_ms)
        now_ms += burst * burst * 23
        assert explained_manager.record("alice", "c", 900.0, now_ms) == alone.record("alice", "c", 900.0, now_ms)


def test_request_time_delay_is_capped_at_one_window() -> None:
    manager = ClientRequestQuotaManager(QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(EVERYONE, 1.0)
    manager.record("alice", "c", 25.0, 0)
    found = explained(manager)
    assert last_delay(found).throttle_ms == 1_000
    arithmetic = "(2.500 % - 1 %) / 1 % * 10,000 ms = 15,000 ms, capped at one window: 1,000 ms"
    assert last_delay(found).arithmetic == arithmetic


def test_mutation_quota_is_explained_in_tokens() -> None:
    manager = ControllerMutationQuotaManager(QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(EVERYONE, 5.0)
    manager.record("alice", "c", 65.0, 1_000_000)
    found = explained(manager, 1_000_000)
    assert (found.tokens, found.arithmetic) == (-10.0, "-10 partitions in the token bucket, refilled at 5 partitions/s")
    assert last_delay(found).arithmetic == "10 partitions of debt / 5 partitions/s = 2,000 ms"

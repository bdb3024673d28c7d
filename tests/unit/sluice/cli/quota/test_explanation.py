"""Textual quota explanations."""

from sluice.cli.quota.explanation import in_words
from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.explain import BrokerSeen, Explanation, explain
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig


def test_empty_samples_are_omitted() -> None:
    """After silence, samples stay empty until they are reused."""
    manager = ClientQuotaManager("Produce", QuotaConfig(), QuotaTable("unlimited"))
    manager.set_quota(QuotaEntity(client_id=DEFAULT), 1000)
    for at_ms in (0, 1000, 2000, 60_000):
        manager.record("ANONYMOUS", "shop", 500, at_ms)
    quotas = explain([manager], "ANONYMOUS", "shop", 60_000)
    assert [sample.events for sample in quotas[0].samples].count(0) > 0
    text = in_words(Explanation("shop", "ANONYMOUS", "by-version", "enforce", 60_000, [BrokerSeen(1, quotas, [])]))
    lines = [line.strip() for line in text.splitlines()]
    assert [line for line in lines if line.startswith("from ")] == ["from 00:01:00.000: 500 bytes in 1 request"]

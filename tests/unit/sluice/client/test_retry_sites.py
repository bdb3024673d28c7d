"""The backoff at each retry site, in Kafka and in KIP-580."""

import pytest

from sluice.client.backoff import ExponentialBackoff, KipRetryBackoff, StaticBackoff
from sluice.client.config import Profile, producer_config
from sluice.client.retry_sites import RetrySite, backoff_at
from tests.support.client_network import Middle

BACKOFFS = [
    (RetrySite.PRODUCER_BATCH, "kafka", ExponentialBackoff),
    (RetrySite.PRODUCER_BATCH, "kip", KipRetryBackoff),
    (RetrySite.TRANSACTIONAL_REQUEST, "kafka", StaticBackoff),
    (RetrySite.TRANSACTIONAL_REQUEST, "kip", KipRetryBackoff),
    (RetrySite.COORDINATOR_LOOKUP, "kafka", ExponentialBackoff),
    (RetrySite.COORDINATOR_LOOKUP, "kip", StaticBackoff),
    (RetrySite.JOIN_GROUP, "kafka", StaticBackoff),
    (RetrySite.JOIN_GROUP, "kip", StaticBackoff),
]


@pytest.mark.parametrize(("site", "profile", "kind"), BACKOFFS)
def test_backoff_of_each_site(site: RetrySite, profile: Profile, kind: type) -> None:
    config = producer_config({"bootstrap.servers": "a:1", "retry.backoff.ms": 70}, profile)
    backoff = backoff_at(site, config, Middle().uniform)
    assert type(backoff) is kind
    assert backoff.backoff(0) == 70
    assert backoff.backoff(1) == (70 if kind is StaticBackoff else 140)


def test_every_site_is_defined_for_both_profiles() -> None:
    for site in RetrySite:
        assert set(site.by_profile.values()) <= {"exponential", "static"}, site
        assert site.description

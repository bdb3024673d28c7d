"""From which version on clients wait by themselves (KIP-219): the table names APIs that there are, as Kafka has it."""

import pytest

from sluice.client.network import throttling
from sluice.client.network.throttling import THROTTLES_SINCE
from sluice.protocol.apis import API_KEYS

BY_NAME = {API_KEYS[key].name: version for key, version in THROTTLES_SINCE.items()}


def test_every_name_of_the_table_is_an_api() -> None:
    assert set(throttling._SINCE_BY_NAME) <= set(BY_NAME)
    assert all(API_KEYS[key].max_version >= since for key, since in THROTTLES_SINCE.items() if since < 0x7FFF)


@pytest.mark.parametrize(
    ("api", "since"),
    [("Produce", 6), ("Fetch", 8), ("Metadata", 6), ("ApiVersions", 2), ("OffsetDelete", 0), ("EndTxn", 1)],
)
def test_answers_of_these_versions_come_before_the_wait(api: str, since: int) -> None:
    assert BY_NAME[api] == since


@pytest.mark.parametrize(
    "api", ["AlterClientQuotas", "OffsetForLeaderEpoch", "SaslHandshake", "ConsumerGroupHeartbeat"]
)
def test_of_these_never(api: str) -> None:
    assert BY_NAME[api] > API_KEYS[next(key for key in API_KEYS if API_KEYS[key].name == api)].max_version

"""The values of `quota.profile`: how each Kafka release, or each request version, throttles.

KIP-13 delays the response. KIP-219 (Kafka 2.0) sends it at once and mutes the connection. `by-version` delays the
responses to request versions older than KIP-219, and mutes for later ones.

| profile | throttling | fetch above the quota | two quotas | empty client id | arithmetic |
|---|---|---|---|---|---|
| `kip-13` | response delayed | delayed before it reads | the longer time | shares the default | 3.8 and later |
| `kafka-0.9` to `1.1` | as `kip-13` | reads, then is delayed | one after the other | as `kip-13` | up to 3.7 |
| `kafka-2.0` to `3.7` | response sent, then muted | empty, not charged | the longer time | unlimited | up to 3.7 |
| `kafka-3.8` and later | the same | the same | the same | the same | 3.8 and later |
| `by-version` | `kip-13` or `kafka-4.4` | the same | the longer time | as `kip-13` | 3.8 and later |

A fetch is limited to the bytes that its quota grants an idle client at once, except by `kafka-0.9` to `2.4`.
`throttling_mode` has worked examples.
"""

from enum import Enum
from functools import cache

from msgspec import Struct

from sluice.config.kafka_releases import RELEASES
from sluice.protocol.apis import API_KEYS
from sluice.quotas.entity import EmptyClientId
from sluice.quotas.sensor import Rate, RateUpTo37


class Throttling(Enum):
    """How to throttle a request above its quota; see `throttling_mode`."""

    HOLD = "hold"  # KIP-13
    WITHHOLD = "withhold"  # Kafka up to 1.1
    MUTE = "mute"  # KIP-219

    __hash__ = object.__hash__  # faster than Enum's Python function: each request looks a member up


HOLD, WITHHOLD, MUTE = Throttling
_BY_VERSION = None


class Profile(Struct, frozen=True):
    """One value of `quota.profile`; if `throttling` is None, the request version decides."""

    throttling: Throttling | None
    empty_client_id: EmptyClientId
    rate: type[Rate] = Rate
    cuts_fetches: bool = True

    def throttling_of(self, api_key: int, version: int) -> Throttling:
        if self.throttling is not _BY_VERSION:
            return self.throttling
        return _by_version(api_key, version)


@cache
def _by_version(api_key: int, version: int) -> Throttling:
    return MUTE if API_KEYS[api_key].client_throttles(version) else HOLD


# The first Kafka release of each behaviour.
_SINCE = {
    "0.9": Profile(WITHHOLD, "shares_default", rate=RateUpTo37, cuts_fetches=False),
    "2.0": Profile(MUTE, "unlimited", rate=RateUpTo37, cuts_fetches=False),
    "2.5": Profile(MUTE, "unlimited", rate=RateUpTo37),
    "3.8": Profile(MUTE, "unlimited"),
}


def _profiles() -> dict[str, Profile]:
    profiles = {
        "by-version": Profile(_BY_VERSION, "shares_default"),
        "kip-13": Profile(HOLD, "shares_default"),
    }
    profile = _SINCE[RELEASES[0]]
    for release in RELEASES:
        profile = profiles[f"kafka-{release}"] = _SINCE.get(release, profile)
    return profiles


PROFILES = _profiles()

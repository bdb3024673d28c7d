"""How a request over quota is made to wait, by `quota.profile`.

KIP-13 holds an answer back; since KIP-219 (Kafka 2.0) the answer goes out at once and the connection is muted. Clients
that know KIP-219 wait by themselves after an answer that names a throttle time: were their answers held back too, they
would wait twice. `by-version` therefore holds back for request versions older than KIP-219 and mutes for the others,
so that no client waits twice and old clients see what KIP-13 describes. The other profiles treat all versions alike.

| profile | over quota | fetch over quota | over two quotas | empty client id | arithmetic |
|---|---|---|---|---|---|
| `kip-13` | done; the answer is held | held before the log is read | the longer wait | has the default quota | 3.8 on |
| `kafka-0.9` to `1.1` | as `kip-13` | read, then held | one after the other | as `kip-13` | up to 3.7 |
| `kafka-2.0` to `3.7` | done; answered, then muted | empty, un-recorded, muted | the longer | unlimited | up to 3.7 |
| `kafka-3.8` on | the same | the same | the same | the same | 3.8 on |
| `by-version` | `kip-13` or `kafka-4.4` | the same | the longer | as `kip-13` | 3.8 on |

A fetch is cut to what an idle client may have at once; Kafka does so from 2.5 on.
"""

from enum import Enum
from typing import NamedTuple

from sluice.config.kafka_releases import RELEASES
from sluice.protocol.apis import API_KEYS
from sluice.quotas.entity import EmptyClientId
from sluice.quotas.sensor import Rate, RateUpTo37


class Throttling(Enum):
    """How a request over quota is made to wait."""

    HOLD = "hold"  # the answer waits in the purgatory, then says how long it waited; a fetch reads after that (KIP-13)
    WITHHOLD = "withhold"  # the same, but a fetch has read before: what every release up to 1.1 did
    MUTE = "mute"  # the answer goes out at once; the connection is not read for as long as it says (KIP-219)


HOLD, WITHHOLD, MUTE = Throttling
_BY_VERSION = None


class Profile(NamedTuple):
    """One value of `quota.profile`. Without a throttling of its own it goes by the version of the request."""

    throttling: Throttling | None
    empty_client_id: EmptyClientId
    rate: type[Rate] = Rate
    cuts_fetches: bool = True

    def throttling_of(self, api_key: int, version: int) -> Throttling:
        """How an over-quota request of this API and version is made to wait."""
        if self.throttling is not _BY_VERSION:
            return self.throttling
        return MUTE if API_KEYS[api_key].client_throttles(version) else HOLD


# Since which release Kafka does as the profile says.
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

"""The versions and features of a broker (Kafka's NodeApiVersions)."""

from sluice.client.errors import UnsupportedVersionException
from sluice.protocol.apis import Api
from sluice.protocol.apis.api_versions import ApiVersionsResponse


class NodeApiVersions:
    """The ApiVersions response of one broker. `features`: finalized levels, such as transaction.version."""

    def __init__(self, response: ApiVersionsResponse) -> None:
        self._versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        is_finalized = response.finalized_features_epoch >= 0
        finalized = response.finalized_features if is_finalized else []
        self.features = {feature.name: feature.max_version_level for feature in finalized}

    def latest_usable(self, api: Api, oldest: int, latest: int) -> int:
        """Raise UnsupportedVersionException if there is no common version."""
        served = self._versions.get(api.key)
        if served is None:
            raise UnsupportedVersionException(f"{api.name} is not served by this broker")
        version = min(latest, served[1])
        if version < max(oldest, served[0]):
            raise UnsupportedVersionException(
                f"{api.name}: the broker serves versions {served[0]} to {served[1]}; expected {oldest} to {latest}"
            )
        return version

    def serves(self, api: Api, version: int) -> bool:
        lowest, highest = self._versions.get(api.key, (0, -1))
        return lowest <= version <= highest

"""Admin calls for client quotas (KIP-546), to any broker."""

from collections.abc import Iterable, Mapping

from sluice.client.network.in_flight import request_of
from sluice.protocol.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from sluice.protocol.apis.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import AdminCalls, Outcomes, least_loaded, outcome, raise_error

# Names by type (`user`, `client-id`, `ip`); None is the default entity.
QuotaEntity = frozenset[tuple[str, str | None]]


@checks_arguments
class QuotaAdmin:
    _calls: AdminCalls

    async def describe_client_quotas(
        self, components: Iterable[ComponentData] = (), *, strict: bool = False, timeout_ms: Milliseconds | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return quotas of entities that match all components and, if `strict`, have no others."""
        request = request_of(DescribeClientQuotasRequest(components=list(components), strict=strict))
        response = await self._calls.call(least_loaded, request, DescribeClientQuotasResponse, timeout_ms, raise_error)
        return {
            _entity(entry.entity): {value.key: value.value for value in entry.values}
            for entry in response.entries or ()
        }

    async def alter_client_quotas(
        self,
        quotas: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: Milliseconds | None = None,
    ) -> Outcomes[QuotaEntity, None]:
        """Set quotas by name, such as `producer_byte_rate` in bytes per second; None removes one."""
        entries = [
            EntryData(
                entity=[
                    EntityData(entity_type=type_, entity_name=name)
                    for type_, name in sorted(entity, key=lambda part: part[0])
                ],
                ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in limits.items()],
            )
            for entity, limits in quotas.items()
        ]
        request = request_of(AlterClientQuotasRequest(entries=entries, validate_only=validate_only))
        response = await self._calls.call(least_loaded, request, AlterClientQuotasResponse, timeout_ms)
        return Outcomes({_entity(entry.entity): outcome(entry, None) for entry in response.entries})


def quota_entity(*, user: str | None = "", client_id: str | None = "", ip: str | None = "") -> QuotaEntity:
    """Return the entity of a user, a client id, both, or an IP address; None is the default of its type."""
    parts = (("user", user), ("client-id", client_id), ("ip", ip))
    return frozenset((type_, name) for type_, name in parts if name != "")


def _entity(parts: Iterable[EntityData]) -> QuotaEntity:
    return frozenset((part.entity_type, part.entity_name) for part in parts)

"""AlterClientQuotas, key 49, versions 0-1 (KIP-546).

Follows ClientQuotaControlManager.alterClientQuotas; `sluice.quotas.client_quotas` validates.
"""

from collections.abc import Mapping

from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.journal_events import NO_ID
from sluice.protocol.apis import alter_client_quotas as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.quotas.client_quotas import TYPES, Entity

API = served("AlterClientQuotas", "0-1", forwarded=True)


def handle(ctx: RequestContext, request: api.AlterClientQuotasRequest, broker: Broker) -> Message:
    """Alter each entity as a whole.

    As in Kafka, the first alteration of a repeated entity applies, and its result is an error.
    """
    if not broker.auth.authorize_cluster(ctx, AclOperation.ALTER_CONFIGS):
        denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return failed(ctx, request, denied, denied.message)
    results: dict[frozenset[tuple[str, str | None]] | int, api.EntryResult] = ctx.mapping()
    for entry in request.entries:
        entity: dict[str, str | None] = ctx.kept_mapping()
        for part in entry.entity:
            entity[part.entity_type] = part.entity_name
        # Entities with more parts than types are invalid, however often they are repeated.
        identity = frozenset(entity.items()) if len(entity) <= len(TYPES) else len(results)
        code, message = _alter(ctx, broker, entity, entry, request.validate_only, repeated=identity in results)
        results[identity] = _result(ctx, entity, code, message)
    return api.AlterClientQuotasResponse(entries=list(results.values()))


def _alter(
    ctx: RequestContext,
    broker: Broker,
    entity: dict[str, str | None],
    entry: api.EntryData,
    validate_only: bool,
    *,
    repeated: bool,
) -> tuple[ErrorCode, str | None]:
    changes = {op.key: None if op.remove else op.value for op in entry.ops}
    if repeated or len(changes) < len(entry.ops):
        # Kafka's message, also for a repeated key.
        parts = ", ".join(f"{type_}={'null' if name is None else name}" for type_, name in sorted(entity.items()))
        return ErrorCode.INVALID_REQUEST, f"Ignoring duplicate entity ClientQuotaEntity(entries={{{parts}}})"
    return alter(broker.cluster, entity, changes, validate_only=validate_only)


def alter(
    cluster: Cluster, entity: Entity, changes: Mapping[str, float | None], *, validate_only: bool
) -> tuple[ErrorCode, str | None]:
    problem = cluster.client_quotas.refusal(entity, changes)
    if problem is not None:
        return ErrorCode.INVALID_REQUEST, problem
    if not validate_only:
        if cluster.metadata_log is not None and (code := cluster.metadata_log.quotas_altered(entity, changes)):
            return code, code.message
        cluster.client_quotas.alter(entity, changes)
        if cluster.journal is not None:
            name = ",".join(
                f"{type_}={'<default>' if name is None else name}" for type_, name in sorted(entity.items())
            )
            quotas = {
                key: value
                for _, now in cluster.client_quotas.matching(entity, (), strict=True)
                for key, value in now.items()
            }
            cluster.journal.add_cluster_event("quota-change", NO_ID, entity=name, quotas=quotas)
    return ErrorCode.NONE, None


def _result(ctx: RequestContext, entity: Entity, code: ErrorCode, message: str | None) -> api.EntryResult:
    ctx.error_code = ctx.error_code or code
    return api.EntryResult(
        error_code=code,
        error_message=message,
        entity=[api.EntityData(entity_type=type_, entity_name=name) for type_, name in ctx.sliced(entity.items())],
    )

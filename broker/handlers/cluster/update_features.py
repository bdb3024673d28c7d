"""UpdateFeatures, key 57, versions 0-2 (KIP-584).

Follows FeatureControlManager.updateFeatures: one error fails the whole request. v0 cannot downgrade, as in Kafka 4.4.
"""

from collections.abc import Mapping

from sluice.broker.broker import Broker
from sluice.broker.metadata.features import KRAFT_VERSION, METADATA_VERSION, changes_records, is_metadata_version_enough
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis import update_features as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("UpdateFeatures", "0-2", forwarded=True)

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_FAILED = "The update failed for all features since the following feature had an error: "
_RESULTS_UNTIL = 1


def handle(ctx: RequestContext, request: api.UpdateFeaturesRequest, broker: Broker) -> Message:
    if (denial := broker.auth.cluster_denial(ctx, AclOperation.ALTER)) is not None:
        return failed(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, denial)
    updates = request.feature_updates
    levels = {update.feature: update.max_version_level for update in updates}
    problem = next(filter(None, (_problem(broker, update, levels) for update in updates)), None)
    if problem is not None:
        return failed(ctx, request, ErrorCode.INVALID_UPDATE_VERSION, _FAILED + problem)
    if not request.validate_only and (code := broker.cluster.update_features(levels)):
        return failed(ctx, request, code, code.message)
    results = updates if ctx.version <= _RESULTS_UNTIL else ()
    return api.UpdateFeaturesResponse(
        error_message=None,
        results=[api.UpdatableFeatureResult(feature=update.feature, error_message="NONE") for update in results],
    )


def _problem(broker: Broker, update: api.FeatureUpdateKey, levels: Mapping[str, int]) -> str | None:
    name, level = update.feature, update.max_version_level
    invalid = f"Invalid update version {level} for feature {name}. "
    if update.upgrade_type not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        return invalid + "The controller does not support the given upgrade type."
    if level < 0:
        return invalid + "A feature version cannot be less than 0."
    feature = broker.features.by_name.get(name)
    local = f"Local controller {broker.cluster.quorum_leader_id} "
    if feature is None:
        return invalid + local + "does not support this feature."
    if not feature.min_level <= level <= feature.max_level:
        return f"{invalid}{local}only supports versions {feature.min_level}-{feature.max_level}"
    before = feature.finalized_level
    if level < before and update.upgrade_type == _UPGRADE:
        return invalid + (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if level > before and update.upgrade_type != _UPGRADE:
        return invalid + "Can't downgrade to a newer version."
    if level < before and name == KRAFT_VERSION:
        return invalid + "Can't downgrade the version of this feature."
    if name == METADATA_VERSION and changes_records(level, before):
        return f"Unsupported metadata.version downgrade from {before} to {level}. " + (
            "Unsafe metadata downgrade is not supported in this version."
            if update.upgrade_type == _UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata information."
        )
    metadata_version = broker.features.level(METADATA_VERSION)
    if is_metadata_version_enough(feature, level, {METADATA_VERSION: metadata_version, **levels}):
        return None
    needed = f"{METADATA_VERSION} level {feature.needed_metadata_version}"
    return f"{invalid}{name} could not be set to {level} because it depends on {needed}"

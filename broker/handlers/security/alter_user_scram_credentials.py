"""AlterUserScramCredentials, key 51, version 0 (KIP-554).

Follows ScramControlManager.alterCredentials: repeated users always fail, others independently. Clients send
only salted passwords.
"""

from itertools import chain

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.broker.security.sasl.scram_credentials import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism, credential
from sluice.protocol.apis import alter_user_scram_credentials as api
from sluice.protocol.errors import ErrorCode

API = served("AlterUserScramCredentials", "0", forwarded=True)

_MECHANISMS = {mechanism.value: mechanism for mechanism in ScramMechanism}

Change = api.ScramCredentialDeletion | api.ScramCredentialUpsertion
_Error = tuple[ErrorCode, str]


def handle(
    ctx: RequestContext, request: api.AlterUserScramCredentialsRequest, broker: Broker
) -> api.AlterUserScramCredentialsResponse:
    changes: dict[str, Change] = ctx.mapping()
    errors: dict[str, _Error] = ctx.mapping()
    all_changes: list[Change] = ctx.array(chain(request.deletions, request.upsertions))
    if (denied := broker.auth.cluster_denial(ctx, AclOperation.ALTER)) is not None:
        for name in sorted(ctx.counts(one.name for one in all_changes)):
            errors[name] = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, denied
    for change in all_changes:
        if change.name in errors:
            continue
        if changes.pop(change.name, None) is not None:
            message = "A user credential cannot be altered twice in the same request"
            errors[change.name] = ErrorCode.DUPLICATE_RESOURCE, message
        elif (error := _change_error(ctx, broker, change)) is not None:
            errors[change.name] = error
        else:
            changes[change.name] = change
    for change in ctx.array(changes.values()):
        failed = _apply(ctx, broker, change)
        if failed:
            del changes[change.name]
            errors[change.name] = failed, failed.message
    results = [api.AlterUserScramCredentialsResult(user=user, error_message=None) for user in changes]
    for user, (code, message) in errors.items():
        ctx.error_code = ctx.error_code or code
        results.append(api.AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message))
    return api.AlterUserScramCredentialsResponse(results=results)


def _change_error(ctx: RequestContext, broker: Broker, change: Change) -> _Error | None:
    if not change.name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    mechanism = _MECHANISMS.get(change.mechanism)
    if mechanism is None:
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if isinstance(change, api.ScramCredentialUpsertion):
        if change.iterations < MIN_ITERATIONS:
            return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
        if change.iterations > MAX_ITERATIONS:
            return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"
    elif broker.cluster.scram_credentials.get(change.name, mechanism) is None:
        return ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
    return None


def _apply(ctx: RequestContext, broker: Broker, change: Change) -> ErrorCode:
    mechanism = _MECHANISMS[change.mechanism]
    known, metadata_log = broker.cluster.scram_credentials, broker.cluster.metadata_log
    if isinstance(change, api.ScramCredentialUpsertion):
        new = credential(mechanism, change.salt, change.salted_password, change.iterations)
        if metadata_log is not None and (failed := metadata_log.scram_credential_set(change.name, mechanism, new)):
            return failed
        known.put(change.name, mechanism, new)
    elif known.get(change.name, mechanism) is None:  # another request deleted it meanwhile
        return ErrorCode.RESOURCE_NOT_FOUND
    else:
        if metadata_log is not None and (failed := metadata_log.scram_credential_removed(change.name, mechanism)):
            return failed
        known.remove(change.name, mechanism)
    return ErrorCode.NONE

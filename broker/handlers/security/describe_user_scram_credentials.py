"""DescribeUserScramCredentials, key 50, version 0 (KIP-554). Follows ScramImage.describe."""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis import describe_user_scram_credentials as api
from sluice.protocol.errors import ErrorCode

API = served("DescribeUserScramCredentials", "0")


def handle(
    ctx: RequestContext, request: api.DescribeUserScramCredentialsRequest, broker: Broker
) -> api.DescribeUserScramCredentialsResponse:
    if not broker.auth.authorize_cluster(ctx, AclOperation.DESCRIBE):
        return _denied(ctx, request)
    known = broker.cluster.scram_credentials
    requested = ctx.counts((user.name for user in request.users) if request.users else known.users())
    results = [_describe(ctx, broker, user, times) for user, times in requested.items()]
    ctx.error_code = next((result.error_code for result in results if result.error_code), 0)
    return api.DescribeUserScramCredentialsResponse(results=results)


def _describe(ctx: RequestContext, broker: Broker, user: str, times: int) -> api.DescribeUserScramCredentialsResult:
    if times > 1:
        return api.DescribeUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message=f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}",
        )
    credentials = broker.cluster.scram_credentials.of_user(user)
    if not credentials:
        return api.DescribeUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {user}",
        )
    infos = [api.CredentialInfo(mechanism=mechanism.value, iterations=own.iterations) for mechanism, own in credentials]
    return api.DescribeUserScramCredentialsResult(user=user, credential_infos=infos)


def _denied(
    ctx: RequestContext, request: api.DescribeUserScramCredentialsRequest
) -> api.DescribeUserScramCredentialsResponse:
    # As in Kafka: one result without a name for each requested user.
    code = ctx.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    results = [api.DescribeUserScramCredentialsResult(error_code=code, error_message=None)] * len(request.users or [])
    return api.DescribeUserScramCredentialsResponse(error_code=code, error_message=None, results=results)

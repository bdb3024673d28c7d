"""Admin calls for ACLs and SCRAM credentials."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from secrets import token_bytes
from typing import NamedTuple, TypeVar

from sluice.client.errors import raise_for
from sluice.client.network.in_flight import request_of
from sluice.protocol.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from sluice.protocol.apis.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from sluice.protocol.apis.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from sluice.protocol.apis.describe_acls import DescribeAclsRequest, DescribeAclsResource, DescribeAclsResponse
from sluice.protocol.apis.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from sluice.protocol.errors import ErrorCode
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import AdminCalls, Outcomes, controller, least_loaded, outcome, raise_error

T = TypeVar("T")

_SALT_BYTES = 16


class Acl(NamedTuple):
    """An ACL. The numbers are Kafka's ids."""

    resource_type: int
    resource_name: str
    principal: str
    operation: int
    permission_type: int = 3  # 2: deny, 3: allow
    host: str = "*"
    pattern_type: int = 3  # 3: literal, 4: prefixed


class AclFilter(NamedTuple):
    """A filter of ACLs; None and the default numbers match everything."""

    resource_type: int = 1
    resource_name: str | None = None
    principal: str | None = None
    operation: int = 1
    permission_type: int = 1
    host: str | None = None
    pattern_type: int = 1  # 2: match all patterns that apply to the name


class ScramMechanism(IntEnum):
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


@checks_arguments
class AccessAdmin:
    _calls: AdminCalls

    async def describe_acls(
        self, wanted: AclFilter | None = None, *, timeout_ms: Milliseconds | None = None
    ) -> list[DescribeAclsResource]:
        """Return the matching ACLs, by resource; all by default."""
        request = request_of(_filtering(DescribeAclsRequest, wanted or AclFilter()), oldest=1)
        response = await self._calls.call(least_loaded, request, DescribeAclsResponse, timeout_ms, raise_error)
        return response.resources

    async def create_acls(self, acls: Iterable[Acl], *, timeout_ms: Milliseconds | None = None) -> Outcomes[Acl, None]:
        """Create ACLs."""
        wanted = list(dict.fromkeys(acls))
        creations = [
            AclCreation(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                resource_pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in wanted
        ]
        request = request_of(CreateAclsRequest(creations=creations), oldest=1)
        response = await self._calls.call(least_loaded, request, CreateAclsResponse, timeout_ms)
        return Outcomes({acl: outcome(result, None) for acl, result in zip(wanted, response.results, strict=True)})

    async def delete_acls(
        self, filters: Iterable[AclFilter], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[AclFilter, list[DeleteAclsMatchingAcl]]:
        """Delete the ACLs that match filters; return those that each filter deleted."""
        wanted = list(dict.fromkeys(filters))
        message = DeleteAclsRequest(filters=[_filtering(DeleteAclsFilter, one) for one in wanted])
        request = request_of(message, oldest=1)
        response = await self._calls.call(least_loaded, request, DeleteAclsResponse, timeout_ms)
        return Outcomes(
            {
                one: outcome(result, result.matching_acls)
                for one, result in zip(wanted, response.filter_results, strict=True)
            }
        )

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[str, list[CredentialInfo]]:
        """Return the mechanisms and iterations of users; of all users by default."""
        wanted = None if users is None else [UserName(name=name) for name in users]
        request = request_of(DescribeUserScramCredentialsRequest(users=wanted))
        response = await self._calls.call(
            least_loaded, request, DescribeUserScramCredentialsResponse, timeout_ms, raise_error
        )
        return Outcomes({found.user: outcome(found, found.credential_infos) for found in response.results})

    async def alter_user_scram_credentials(
        self,
        passwords: Mapping[tuple[str, ScramMechanism], str | None],
        *,
        iterations: int = 4096,
        timeout_ms: Milliseconds | None = None,
    ) -> Outcomes[str, None]:
        """Set passwords by user and mechanism; None deletes a credential. Sent to the controller."""
        message = AlterUserScramCredentialsRequest(
            deletions=[
                ScramCredentialDeletion(name=user, mechanism=mechanism)
                for (user, mechanism), password in passwords.items()
                if password is None
            ],
            upsertions=[
                _upsertion(user, mechanism, password, iterations)
                for (user, mechanism), password in passwords.items()
                if password is not None
            ],
        )

        def check(response: AlterUserScramCredentialsResponse) -> None:
            if any(found.error_code == ErrorCode.NOT_CONTROLLER for found in response.results):
                raise_for(ErrorCode.NOT_CONTROLLER)

        response = await self._calls.call(
            controller, request_of(message), AlterUserScramCredentialsResponse, timeout_ms, check
        )
        return Outcomes({found.user: outcome(found, None) for found in response.results})


def _filtering(message: Callable[..., T], wanted: AclFilter) -> T:
    return message(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission_type,
    )


def _upsertion(user: str, mechanism: ScramMechanism, password: str, iterations: int) -> ScramCredentialUpsertion:
    salt = token_bytes(_SALT_BYTES)
    algorithm = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}[mechanism]
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted
    )

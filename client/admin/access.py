"""Who may do what, and how much of it: ACLs, SCRAM credentials and quotas, as an admin client sees to them. Any broker
is asked, and the controller for changes of credentials.
"""

import hashlib
from collections.abc import Iterable, Mapping
from enum import IntEnum
from secrets import token_bytes
from typing import NamedTuple

from sluice.client.errors import raise_for
from sluice.client.network.in_flight import request_of
from sluice.protocol.apis import alter_client_quotas, describe_client_quotas
from sluice.protocol.apis.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse, OpData
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
from sluice.protocol.apis.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from sluice.protocol.apis.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from sluice.protocol.errors import ErrorCode

from .calls import AdminCalls, Outcomes, controller, least_loaded, outcome_of

# A quota's entity: names by type (`user`, `client-id`, `ip`), None for the default.
QuotaEntity = frozenset[tuple[str, str | None]]

_SALT_BYTES = 16


class Acl(NamedTuple):
    """An ACL. The numbers are Kafka's: of resource types, pattern types, operations, and permissions."""

    resource_type: int
    resource_name: str
    principal: str
    operation: int
    permission_type: int = 3  # 2: deny, 3: allow
    host: str = "*"
    pattern_type: int = 3  # 3: literal, 4: prefixed


class AclFilter(NamedTuple):
    """Which ACLs are meant; the numbers that are not given, and None, mean any."""

    resource_type: int = 1
    resource_name: str | None = None
    principal: str | None = None
    operation: int = 1
    permission_type: int = 1
    host: str | None = None
    pattern_type: int = 1  # 2: all patterns that apply to the name


class ScramMechanism(IntEnum):
    """How a password is hashed."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


class AccessAdmin:
    """Calls about access."""

    _calls: AdminCalls

    async def describe_acls(
        self, wanted: AclFilter | None = None, *, timeout_ms: int | None = None
    ) -> list[DescribeAclsResource]:
        """The ACLs that a filter means, by resource."""
        meant = wanted or AclFilter()
        message = DescribeAclsRequest(
            resource_type_filter=meant.resource_type,
            resource_name_filter=meant.resource_name,
            pattern_type_filter=meant.pattern_type,
            principal_filter=meant.principal,
            host_filter=meant.host,
            operation=meant.operation,
            permission_type=meant.permission_type,
        )
        request = request_of(message, oldest=1)
        answer = await self._calls.call(
            least_loaded,
            lambda _: request,
            DescribeAclsResponse,
            self._calls.deadline_ms(timeout_ms),
            lambda answer: raise_for(answer.error_code, answer.error_message),
        )
        return answer.resources

    async def create_acls(self, acls: Iterable[Acl], *, timeout_ms: int | None = None) -> Outcomes[Acl, None]:
        """Makes ACLs."""
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
        deadline_ms = self._calls.deadline_ms(timeout_ms)
        answer = await self._calls.call(least_loaded, lambda _: request, CreateAclsResponse, deadline_ms)
        return Outcomes(
            {
                acl: outcome_of(result.error_code, result.error_message, None)
                for acl, result in zip(wanted, answer.results, strict=True)
            }
        )

    async def delete_acls(
        self, filters: Iterable[AclFilter], *, timeout_ms: int | None = None
    ) -> Outcomes[AclFilter, list[DeleteAclsMatchingAcl]]:
        """Deletes the ACLs that filters mean; which these were, by filter."""
        wanted = list(dict.fromkeys(filters))
        message = DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    resource_type_filter=meant.resource_type,
                    resource_name_filter=meant.resource_name,
                    pattern_type_filter=meant.pattern_type,
                    principal_filter=meant.principal,
                    host_filter=meant.host,
                    operation=meant.operation,
                    permission_type=meant.permission_type,
                )
                for meant in wanted
            ]
        )
        request = request_of(message, oldest=1)
        deadline_ms = self._calls.deadline_ms(timeout_ms)
        answer = await self._calls.call(least_loaded, lambda _: request, DeleteAclsResponse, deadline_ms)
        return Outcomes(
            {
                meant: outcome_of(result.error_code, result.error_message, result.matching_acls)
                for meant, result in zip(wanted, answer.filter_results, strict=True)
            }
        )

    async def describe_client_quotas(
        self, components: Iterable[ComponentData] = (), *, strict: bool = False, timeout_ms: int | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Quotas by entity: of all, or of those that have all these components, and, if `strict`, no others."""
        request = request_of(DescribeClientQuotasRequest(components=list(components), strict=strict))
        answer = await self._calls.call(
            least_loaded,
            lambda _: request,
            DescribeClientQuotasResponse,
            self._calls.deadline_ms(timeout_ms),
            lambda answer: raise_for(answer.error_code, answer.error_message),
        )
        return {
            _entity(entry.entity): {value.key: value.value for value in entry.values} for entry in answer.entries or ()
        }

    async def alter_client_quotas(
        self,
        quotas: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Outcomes[QuotaEntity, None]:
        """Sets quotas by their names, such as `producer_byte_rate`; None removes one."""
        entries = [
            alter_client_quotas.EntryData(
                entity=[
                    alter_client_quotas.EntityData(entity_type=type_, entity_name=name)
                    for type_, name in sorted(entity, key=lambda part: part[0])
                ],
                ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in limits.items()],
            )
            for entity, limits in quotas.items()
        ]
        request = request_of(AlterClientQuotasRequest(entries=entries, validate_only=validate_only))
        deadline_ms = self._calls.deadline_ms(timeout_ms)
        answer = await self._calls.call(least_loaded, lambda _: request, AlterClientQuotasResponse, deadline_ms)
        return Outcomes(
            {_entity(entry.entity): outcome_of(entry.error_code, entry.error_message, None) for entry in answer.entries}
        )

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> Outcomes[str, list[CredentialInfo]]:
        """Mechanisms and iterations of users, or of all."""
        wanted = None if users is None else [UserName(name=name) for name in users]
        request = request_of(DescribeUserScramCredentialsRequest(users=wanted))
        answer = await self._calls.call(
            least_loaded,
            lambda _: request,
            DescribeUserScramCredentialsResponse,
            self._calls.deadline_ms(timeout_ms),
            lambda answer: raise_for(answer.error_code, answer.error_message),
        )
        return Outcomes(
            {
                found.user: outcome_of(found.error_code, found.error_message, found.credential_infos)
                for found in answer.results
            }
        )

    async def alter_user_scram_credentials(
        self,
        passwords: Mapping[tuple[str, ScramMechanism], str | None],
        *,
        iterations: int = 4096,
        timeout_ms: int | None = None,
    ) -> Outcomes[str, None]:
        """Gives users passwords for mechanisms; None takes them away. Asked of the controller."""
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
        request = request_of(message)

        def check(answer: AlterUserScramCredentialsResponse) -> None:
            if any(found.error_code == ErrorCode.NOT_CONTROLLER for found in answer.results):
                raise_for(ErrorCode.NOT_CONTROLLER)

        deadline_ms = self._calls.deadline_ms(timeout_ms)
        answer = await self._calls.call(
            controller, lambda _: request, AlterUserScramCredentialsResponse, deadline_ms, check
        )
        return Outcomes(
            {found.user: outcome_of(found.error_code, found.error_message, None) for found in answer.results}
        )


def quota_entity(*, user: str | None = "", client_id: str | None = "", ip: str | None = "") -> QuotaEntity:
    """The entity of a user, a client id, both, or an address; None for the default of one."""
    parts = (("user", user), ("client-id", client_id), ("ip", ip))
    return frozenset((type_, name) for type_, name in parts if name != "")


def _entity(
    parts: Iterable[describe_client_quotas.EntityData] | Iterable[alter_client_quotas.EntityData],
) -> QuotaEntity:
    return frozenset((part.entity_type, part.entity_name) for part in parts)


def _upsertion(user: str, mechanism: ScramMechanism, password: str, iterations: int) -> ScramCredentialUpsertion:
    salt = token_bytes(_SALT_BYTES)
    algorithm = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}[mechanism]
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted
    )

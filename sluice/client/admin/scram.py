"""Admin calls for SCRAM credentials (KIP-554)."""

import hashlib
from collections.abc import Iterable, Mapping
from enum import IntEnum
from secrets import token_bytes

from sluice.client.errors import raise_for
from sluice.client.network.in_flight import request_of
from sluice.protocol.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from sluice.protocol.apis.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from sluice.protocol.errors import ErrorCode
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import AdminCalls, Outcomes, controller, least_loaded, outcome, raise_error

_SALT_BYTES = 16


class ScramMechanism(IntEnum):
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


@checks_arguments
class ScramAdmin:
    _calls: AdminCalls

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


def _upsertion(user: str, mechanism: ScramMechanism, password: str, iterations: int) -> ScramCredentialUpsertion:
    salt = token_bytes(_SALT_BYTES)
    algorithm = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}[mechanism]
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted
    )

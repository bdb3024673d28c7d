"""AlterUserScramCredentials: resulting logins, and errors."""

from hashlib import pbkdf2_hmac

import pytest

from sluice.protocol.apis import alter_user_scram_credentials as api
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.errors import ErrorCode
from tests.support.sasl import SASL, ScramClient, authenticate, handshake, logged_in
from tests.support.virtual_broker import VirtualBroker

SHA_256, SHA_512 = 1, 2
HASHES = {SHA_256: "sha256", SHA_512: "sha512"}
DUPLICATE = "A user credential cannot be altered twice in the same request"


def upsertion(name: str = "carol", mechanism: int = SHA_256, iterations: int = 4096) -> api.ScramCredentialUpsertion:
    salted = pbkdf2_hmac(HASHES.get(mechanism, "sha256"), b"pencil", b"salt", max(iterations, 1))
    return api.ScramCredentialUpsertion(name, mechanism, iterations, b"salt", salted)


def deletion(name: str = "alice", mechanism: int = SHA_256) -> api.ScramCredentialDeletion:
    return api.ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(
    broker: VirtualBroker, *changes: api.ScramCredentialDeletion | api.ScramCredentialUpsertion
) -> list[tuple[str, int, str | None]]:
    request = api.AlterUserScramCredentialsRequest(
        deletions=[change for change in changes if isinstance(change, api.ScramCredentialDeletion)],
        upsertions=[change for change in changes if isinstance(change, api.ScramCredentialUpsertion)],
    )
    response = logged_in(broker, "bob").call(request, 0)
    return [(result.user, result.error_code, result.error_message) for result in response.results]


def can_log_in(broker: VirtualBroker, user: str, password: str, mechanism: int = SHA_256) -> bool:
    client = broker.client()
    hash_name = HASHES[mechanism]
    handshake(client, f"SCRAM-SHA-{hash_name.removeprefix('sha')}")
    scram = ScramClient(hash_name, user, password)
    client.send(SaslAuthenticateRequest(auth_bytes=scram.first), 2)
    if not client.responses:
        return False  # the failure response is delayed
    return bool(authenticate(client, scram.final(client.response().message.auth_bytes)).auth_bytes == scram.signature)


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512], ids=["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_created_credential_allows_login_with_its_mechanism_only(mechanism: int) -> None:
    broker = VirtualBroker(*SASL)
    assert alter(broker, upsertion(mechanism=mechanism)) == [("carol", 0, None)]
    assert can_log_in(broker, "carol", "pencil", mechanism)
    assert not can_log_in(broker, "carol", "pencil", SHA_256 + SHA_512 - mechanism)


def test_new_password_replaces_the_old_one() -> None:
    broker = VirtualBroker(*SASL)
    assert can_log_in(broker, "alice", "alice-secret")
    alter(broker, upsertion("alice", iterations=8192))
    assert can_log_in(broker, "alice", "pencil")
    assert can_log_in(broker, "alice", "alice-secret", SHA_512), "the other mechanism keeps its password"


def test_deleted_credential_rejects_login() -> None:
    broker = VirtualBroker(*SASL)
    assert alter(broker, deletion("alice", SHA_256)) == [("alice", 0, None)]
    assert not can_log_in(broker, "alice", "alice-secret")
    assert can_log_in(broker, "alice", "alice-secret", SHA_512)
    alter(broker, deletion("alice", SHA_512))
    assert list(broker.cluster.scram_credentials.users()) == ["bob"]


UNACCEPTABLE, TWICE = ErrorCode.UNACCEPTABLE_CREDENTIAL, ErrorCode.DUPLICATE_RESOURCE
NO_NAME = ("", UNACCEPTABLE, "Username must not be empty")
ALICE_TWICE, CAROL_TWICE = [("alice", TWICE, DUPLICATE)], [("carol", TWICE, DUPLICATE)]
INVALID_CHANGES = {
    "too few iterations": ([upsertion(iterations=4095)], [("carol", UNACCEPTABLE, "Too few iterations")]),
    "too many iterations": ([upsertion(iterations=16385)], [("carol", UNACCEPTABLE, "Too many iterations")]),
    "empty user name": ([upsertion("")], [NO_NAME]),
    "empty user name in a deletion": ([deletion("")], [NO_NAME]),
    "unknown mechanisms": (
        [upsertion(mechanism=3), deletion(mechanism=0)],
        [(user, ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism") for user in ("alice", "carol")],
    ),
    "unknown credential": (
        [deletion("carol")],
        [("carol", ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")],
    ),
    "duplicate user in deletions": ([deletion("alice", SHA_256), deletion("alice", SHA_512)], ALICE_TWICE),
    "user in deletions and upsertions": ([deletion("alice"), upsertion("alice")], ALICE_TWICE),
    "duplicate user in upsertions": ([upsertion(), upsertion(mechanism=SHA_512), upsertion()], CAROL_TWICE),
    "one error does not affect other users": ([upsertion(""), upsertion("dave")], [("dave", 0, None), NO_NAME]),
}


@pytest.mark.parametrize(("changes", "results"), INVALID_CHANGES.values(), ids=INVALID_CHANGES)
def test_invalid_changes_are_rejected_per_user(
    changes: list[api.ScramCredentialDeletion | api.ScramCredentialUpsertion],
    results: list[tuple[str, int, str | None]],
) -> None:
    broker = VirtualBroker(*SASL)
    assert alter(broker, *changes) == results
    created = {user for user, code, _ in results if code == 0}
    assert set(broker.cluster.scram_credentials.users()) == {"alice", "bob", *created}


def test_credentials_apply_to_all_brokers() -> None:
    broker = VirtualBroker(*SASL, "sluice.brokers=2")
    alter(broker, upsertion())
    client = broker.client(node_id=2)
    handshake(client, "SCRAM-SHA-256")
    assert authenticate(client, ScramClient("sha256", "carol", "pencil").first).error_code == 0

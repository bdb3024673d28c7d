"""SCRAM: the example of RFC 7677, exchanges of both mechanisms, and rejected messages."""

from base64 import b64decode, b64encode

import pytest

from sluice.broker.security.sasl import scram_credentials
from sluice.broker.security.sasl.mechanism import SaslAuthenticationError, SaslError
from sluice.broker.security.sasl.scram import ScramServerMechanism
from tests.support.sasl import ScramClient

SHA_256, SHA_512 = scram_credentials.ScramMechanism
PASSWORDS = {"alice": "alice-secret", "a,b=c": "x"}
# RFC 7677, section 3.
RFC_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
RFC_SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
RFC_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
RFC_SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
RFC_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
RFC_SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def random_bytes(count: int) -> bytes:
    return bytes(range(count))


def new_nonce() -> str:
    return "3rfcNHYJY1ZVvWVs7j"


def mechanism(kind: scram_credentials.ScramMechanism = SHA_256) -> ScramServerMechanism:
    return ScramServerMechanism(kind, scram_credentials.ScramCredentials(PASSWORDS, random_bytes), new_nonce)


def test_example_of_rfc_7677_matches_exactly() -> None:
    credentials = scram_credentials.ScramCredentials({}, random_bytes)
    credentials.put("user", SHA_256, scram_credentials.credential_of(SHA_256, "pencil", RFC_SALT, 4096))
    server = ScramServerMechanism(SHA_256, credentials, lambda: RFC_NONCE)
    assert server.evaluate(RFC_FIRST) == RFC_SERVER_FIRST
    assert server.evaluate(RFC_FINAL) == RFC_SERVER_FINAL
    assert (server.user, server.expires_at_ms) == ("user", None)


@pytest.mark.parametrize("user", list(PASSWORDS), ids=["plain name", "name with = and ,"])
@pytest.mark.parametrize("kind", scram_credentials.ScramMechanism, ids=lambda kind: kind.sasl_name)
def test_valid_password_is_accepted(kind: scram_credentials.ScramMechanism, user: str) -> None:
    client, server = ScramClient(kind.hash_name, user, PASSWORDS[user]), mechanism(kind)
    assert server.evaluate(client.final(server.evaluate(client.first))) == client.signature
    assert server.user == user


def test_extensions_are_accepted_and_signed() -> None:
    client, server = ScramClient("sha256", "alice", "alice-secret", "nonce,tokenauth=false,x=y"), mechanism()
    assert server.evaluate(client.final(server.evaluate(client.first))) == client.signature


INVALID_FIRST = {
    "unknown user": (b"n,,n=carol,r=abc", "Authentication failed: Invalid user credentials"),
    "empty message": (b"", "Invalid SCRAM client first message format"),
    "channel binding": (b"p=tls-unique,,n=alice,r=abc", "Invalid SCRAM client first message format"),
    "unescaped name": (b"n,,n=al=ice,r=abc", "Invalid SCRAM client first message format"),
    "no nonce": (b"n,,n=alice", "Invalid SCRAM client first message format"),
    "empty nonce": (b"n,,n=alice,r=", "Invalid SCRAM client first message format"),
    "not UTF-8": (b"n,,n=alice,r=\xff\xfe", "Invalid SCRAM client first message format"),
}


@pytest.mark.parametrize(("first", "reason"), INVALID_FIRST.values(), ids=INVALID_FIRST)
def test_invalid_first_message_is_rejected_without_a_reason_for_the_client(first: bytes, reason: str) -> None:
    with pytest.raises(SaslError) as raised:
        mechanism().evaluate(first)
    assert (type(raised.value), raised.value.reason) == (SaslError, reason)


def test_other_authorization_id_is_rejected() -> None:
    with pytest.raises(SaslAuthenticationError, match="an authorization id that is different from username"):
        mechanism().evaluate(b"n,a=bob,n=alice,r=abc")


def test_too_few_iterations_are_rejected() -> None:
    credentials = scram_credentials.ScramCredentials({}, random_bytes)
    credentials.put("alice", SHA_512, scram_credentials.ScramCredential(b"salt", b"k", b"k", 4095))
    with pytest.raises(SaslError, match="Iterations 4095 is less than the minimum 4096 for SCRAM-SHA-512"):
        ScramServerMechanism(SHA_512, credentials, new_nonce).evaluate(b"n,,n=alice,r=abc")


INVALID_FINAL = {
    "invalid format": ((b"c=biws", b"c=b"), "Invalid SCRAM client final message format"),
    "other nonce": ((b",r=fyko", b",r=Fyko"), "Invalid client nonce in the final client message."),
    "unsigned extension": ((b",p=", b",x=y,p="), "Invalid client credentials"),
    "other channel binding": ((b"c=biws", b"c=eSws"), "Invalid client credentials"),
}


@pytest.mark.parametrize(("change", "reason"), INVALID_FINAL.values(), ids=INVALID_FINAL)
def test_invalid_final_message_is_rejected_without_a_reason_for_the_client(
    change: tuple[bytes, bytes], reason: str
) -> None:
    client, server = ScramClient("sha256", "alice", "alice-secret"), mechanism()
    final = client.final(server.evaluate(client.first))
    with pytest.raises(SaslError) as raised:
        server.evaluate(final.replace(*change))
    assert (type(raised.value), raised.value.reason, server.user) == (SaslError, reason, None)


PROOFS = {"empty proof": b"", "short proof": b"AAAA", "long proof": b64encode(bytes(64))}


@pytest.mark.parametrize("proof", PROOFS.values(), ids=PROOFS)
def test_proof_of_another_length_is_rejected(proof: bytes) -> None:
    client, server = ScramClient("sha256", "alice", "alice-secret"), mechanism()
    without_proof, _, _ = client.final(server.evaluate(client.first)).rpartition(b",p=")
    with pytest.raises(SaslError, match="Invalid client credentials"):
        server.evaluate(without_proof + b",p=" + proof)


def test_wrong_password_is_rejected() -> None:
    client, server = ScramClient("sha512", "alice", "wrong"), mechanism(SHA_512)
    with pytest.raises(SaslError, match="Invalid client credentials"):
        server.evaluate(client.final(server.evaluate(client.first)))

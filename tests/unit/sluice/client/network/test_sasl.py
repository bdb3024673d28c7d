"""SASL mechanisms, checked with their RFCs' examples, and complete exchanges."""

from base64 import b64encode

import pytest

from sluice.client.errors import ApiException, SaslAuthenticationException
from sluice.client.network.sasl import conversation, plain, scram
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from sluice.protocol.errors import ErrorCode

USER = {"username": "user", "password": "pencil"}
# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_plain_follows_rfc_4616() -> None:
    assert next(plain(USER)) == b"\0user\0pencil"


def test_scram_follows_rfc_7677() -> None:
    tokens = scram("sha256", USER, NONCE)
    assert next(tokens) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert tokens.send(SERVER_FIRST) == CLIENT_FINAL
    with pytest.raises(StopIteration):
        tokens.send(SERVER_FINAL)


def test_names_are_escaped_and_nonces_are_new() -> None:
    user = {"username": "a=b,c", "password": "x"}
    one, two = (next(scram("sha512", user)).decode() for _ in range(2))
    assert one.startswith("n,,n=a=3Db=2Cc,r=")
    assert one != two


INVALID_MESSAGES = {
    "another's nonce": (b"r=other,s=AA==,i=4096", b"", "the broker's nonce does not start with the client's"),
    "too few iterations": (
        b"r=rOprNGfwEbeRWgbNEkqOx,s=AA==,i=1",
        b"",
        "the broker requires 1 SCRAM iterations; expected 4096 to 100000",
    ),
    "too many iterations": (
        b"r=rOprNGfwEbeRWgbNEkqOx,s=AA==,i=2147483647",
        b"",
        "the broker requires 2147483647 SCRAM iterations; expected 4096 to 100000",
    ),
    "a wrong signature": (SERVER_FIRST, b"v=" + b64encode(bytes(32)), "SCRAM signature is invalid"),
    "an error": (SERVER_FIRST, b"e=other-error", "SCRAM signature is invalid"),
}


@pytest.mark.parametrize(("first", "final", "problem"), INVALID_MESSAGES.values(), ids=INVALID_MESSAGES)
def test_invalid_server_message_is_rejected(first: bytes, final: bytes, problem: str) -> None:
    with pytest.raises(SaslAuthenticationException, match=problem):
        answered(first, final)


def answered(first: bytes, final: bytes) -> None:
    tokens = scram("sha256", USER, NONCE)
    next(tokens)
    tokens.send(first)
    tokens.send(final)


class TestConversations:
    def test_exchange_passes_tokens_to_the_mechanism(self) -> None:
        talk = conversation("PLAIN", USER)
        assert next(talk) == SaslHandshakeRequest(mechanism="PLAIN")
        said = talk.send(SaslHandshakeResponse(mechanisms=["PLAIN"]))
        assert said == SaslAuthenticateRequest(auth_bytes=b"\0user\0pencil")
        with pytest.raises(StopIteration):
            talk.send(SaslAuthenticateResponse())

    def test_unsupported_mechanism_fails(self) -> None:
        talk = conversation("PLAIN", USER)
        next(talk)
        code, mechanisms = ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["GSSAPI", "SCRAM-SHA-256"]
        with pytest.raises(ApiException, match="does not accept PLAIN; expected one of GSSAPI, SCRAM") as caught:
            talk.send(SaslHandshakeResponse(error_code=code, mechanisms=mechanisms))
        assert type(caught.value).__name__ == "UnsupportedSaslMechanismException"

    def test_rejected_credentials_fail(self) -> None:
        talk = conversation("PLAIN", USER)
        next(talk)
        talk.send(SaslHandshakeResponse())
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        with pytest.raises(SaslAuthenticationException, match="wrong password"):
            talk.send(SaslAuthenticateResponse(error_code=code, error_message="wrong password"))

    def test_malformed_server_response_fails(self) -> None:
        talk = conversation("SCRAM-SHA-256", USER)
        next(talk)
        talk.send(SaslHandshakeResponse())
        problem = r"^the broker's response is not valid for SCRAM-SHA-256$"
        with pytest.raises(SaslAuthenticationException, match=problem):
            talk.send(SaslAuthenticateResponse(auth_bytes=b"hello"))

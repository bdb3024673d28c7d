"""PLAIN: accepted and rejected tokens."""

import pytest

from sluice.broker.security.sasl.mechanism import SaslAuthenticationError
from sluice.broker.security.sasl.plain import PlainMechanism
from tests.support.sasl import plain

PASSWORDS = {"alice": "alice-secret", "zoë": "pä:ss"}
WRONG = "Authentication failed: Invalid username or password"


VALID = {
    "name and password": (plain(), "alice"),
    "authorization id equal to the name": (plain(authorization_id="alice"), "alice"),
    "non-ASCII characters": (plain("zoë", "pä:ss"), "zoë"),
}


@pytest.mark.parametrize(("token", "user"), VALID.values(), ids=VALID)
def test_valid_password_is_accepted(token: bytes, user: str) -> None:
    mechanism = PlainMechanism(PASSWORDS)
    assert mechanism.evaluate(token) == b""
    assert (mechanism.user, mechanism.expires_at_ms) == (user, None)


INVALID = {
    "wrong password": (plain(password="x"), WRONG),
    "unknown user": (plain("carol"), WRONG),
    "no name": (plain(""), "Authentication failed: username not specified"),
    "no password": (plain(password=""), "Authentication failed: password not specified"),
    "authorization id of another user": (
        plain(authorization_id="bob"),
        "Authentication failed: Client requested an authorization id that is different from username",
    ),
    "one token": (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    "four tokens": (b"\0a\0b\0c", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    "five tokens": (b"\0a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    "password that is not UTF-8": (b"\0alice\0\xff", WRONG),
}


@pytest.mark.parametrize(("token", "message"), INVALID.values(), ids=INVALID)
def test_invalid_token_is_rejected_with_its_reason(token: bytes, message: str) -> None:
    mechanism = PlainMechanism(PASSWORDS)
    with pytest.raises(SaslAuthenticationError) as raised:
        mechanism.evaluate(token)
    assert (raised.value.client_message, raised.value.reason, mechanism.user) == (message, message, None)

"""PLAIN: who gets in, and what the others are told."""

import pytest

from sluice.broker.security.sasl.mechanism import SaslAuthenticationError
from sluice.broker.security.sasl.plain import PlainMechanism
from tests.support.sasl import plain

PASSWORDS = {"alice": "alice-secret", "zoë": "pä:ss"}
WRONG = "Authentication failed: Invalid username or password"


@pytest.mark.parametrize(
    ("token", "user"),
    [
        pytest.param(plain(), "alice", id="name and password"),
        pytest.param(plain(authorization_id="alice"), "alice", id="an authorization id that is the name"),
        pytest.param(plain("zoë", "pä:ss"), "zoë", id="other characters"),
    ],
)
def test_who_knows_the_password_gets_in(token: bytes, user: str) -> None:
    mechanism = PlainMechanism(PASSWORDS)
    assert mechanism.evaluate(token) == b""
    assert (mechanism.user, mechanism.expires_at_ms) == (user, None)


@pytest.mark.parametrize(
    ("token", "told"),
    [
        pytest.param(plain(password="x"), WRONG, id="a wrong password"),
        pytest.param(plain("carol"), WRONG, id="an unknown user is told the same"),
        pytest.param(plain(""), "Authentication failed: username not specified", id="no name"),
        pytest.param(plain(password=""), "Authentication failed: password not specified", id="no password"),
        pytest.param(
            plain(authorization_id="bob"),
            "Authentication failed: Client requested an authorization id that is different from username",
            id="as someone else",
        ),
        pytest.param(b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1", id="one token"),
        pytest.param(b"\0a\0b\0c", "Invalid SASL/PLAIN response: expected 3 tokens, got 4", id="four tokens"),
        pytest.param(b"\0a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4", id="five tokens"),
        pytest.param(b"\0alice\0\xff", WRONG, id="a password that is not UTF-8"),
    ],
)
def test_who_does_not_is_told_so(token: bytes, told: str) -> None:
    mechanism = PlainMechanism(PASSWORDS)
    with pytest.raises(SaslAuthenticationError) as raised:
        mechanism.evaluate(token)
    assert (raised.value.client_message, raised.value.reason, mechanism.user) == (told, told, None)

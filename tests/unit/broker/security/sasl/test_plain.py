"""PLAIN: accepted and rejected tokens."""

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
        pytest.param(plain(authorization_id="alice"), "alice", id="authorization id equal to the name"),
        pytest.param(plain("zoë", "pä:ss"), "zoë", id="non-ASCII characters"),
    ],
)
def test_valid_password_is_accepted(token: bytes, user: str) -> None:
    mechanism = PlainMechanism(PASSWORDS)
    assert mechanism.evaluate(token) == b""
    assert (mechanism.user, mechanism.expires_at_ms) == (user, None)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        pytest.param(plain(password="x"), WRONG, id="wrong password"),
        pytest.param(plain("carol"), WRONG, id="unknown user"),
        pytest.param(plain(""), "Authentication failed: username not specified", id="no name"),
        pytest.param(plain(password=""), "Authentication failed: password not specified", id="no password"),
        pytest.param(
            plain(authorization_id="bob"),
            "Authentication failed: Client requested an authorization id that is different from username",
            id="authorization id of another user",
        ),
        pytest.param(b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1", id="one token"),
        pytest.param(b"\0a\0b\0c", "Invalid SASL/PLAIN response: expected 3 tokens, got 4", id="four tokens"),
        pytest.param(b"\0a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4", id="five tokens"),
        pytest.param(b"\0alice\0\xff", WRONG, id="password that is not UTF-8"),
    ],
)
def test_invalid_token_is_rejected_with_its_reason(token: bytes, message: str) -> None:
    mechanism = PlainMechanism(PASSWORDS)
    with pytest.raises(SaslAuthenticationError) as raised:
        mechanism.evaluate(token)
    assert (raised.value.client_message, raised.value.reason, mechanism.user) == (message, message, None)

"""OAUTHBEARER: the client's messages, and the two rounds of a rejected token."""

import pytest

from sluice.broker.security.sasl.mechanism import SaslAuthenticationError, SaslError
from sluice.broker.security.sasl.oauthbearer import OAuthBearerMechanism
from sluice.broker.security.sasl.unsecured_jws import TokenValidator
from tests.support.sasl import bearer, token

NOW_MS = 1_700_000_000_000
GOOD = token({"sub": "carol", "exp": NOW_MS / 1000 + 60})
EXPIRED = token({"sub": "carol", "exp": NOW_MS / 1000})


def mechanism(**options: str) -> OAuthBearerMechanism:
    return OAuthBearerMechanism(TokenValidator(options).validate, lambda: NOW_MS)


VALID_MESSAGES = {
    "token": bearer(GOOD),
    "authorization id equal to the principal": bearer(GOOD, "carol"),
    "extensions": bearer(GOOD, extensions="\x01logicalCluster=lkc-1\x01a=b"),
    "scheme in other case, blanks": bearer(GOOD).replace(b"Bearer", b"bEARER  "),
}


@pytest.mark.parametrize("message", VALID_MESSAGES.values(), ids=VALID_MESSAGES)
def test_valid_token_authenticates_until_it_expires(message: bytes) -> None:
    server = mechanism()
    assert server.evaluate(message) == b""
    assert (server.user, server.expires_at_ms) == ("carol", NOW_MS + 60_000)


INVALID_TOKENS = {
    "expired": (mechanism(), EXPIRED, '{"status":"invalid_token"}', "invalid_token: expired (exp)"),
    "missing scope": (
        mechanism(unsecuredValidatorRequiredScope="a b"),
        GOOD,
        '{"status":"insufficient_scope", "scope":"[a, b]"}',
        "insufficient_scope: a scope is missing (scope)",
    ),
}


@pytest.mark.parametrize(("server", "compact", "error_message", "reason"), INVALID_TOKENS.values(), ids=INVALID_TOKENS)
def test_invalid_token_is_rejected_after_the_error_response(
    server: OAuthBearerMechanism, compact: str, error_message: str, reason: str
) -> None:
    assert server.evaluate(bearer(compact)).decode() == error_message
    assert server.user is None
    with pytest.raises(SaslAuthenticationError) as raised:
        server.evaluate(b"\x01")
    assert (raised.value.client_message, raised.value.reason) == (error_message, reason)


def test_valid_token_after_an_invalid_one_is_accepted() -> None:
    server = mechanism()
    server.evaluate(bearer(EXPIRED))
    assert (server.evaluate(bearer(GOOD)), server.user) == (b"", "carol")


def test_other_authorization_id_is_rejected() -> None:
    with pytest.raises(SaslAuthenticationError, match=r"authorization id \(bob\) that is different .* \(carol\)"):
        mechanism().evaluate(bearer(GOOD, "bob"))


INVALID_MESSAGES = {
    "final message first": (b"\x01", "Invalid OAUTHBEARER client first message"),
    "no auth": (b"n,,\x01\x01", "'auth' not specified"),
    "no token": (b"n,,\x01auth=Bearer\x01\x01", "invalid 'auth' format"),
    "other scheme": (b"n,,\x01auth=Basic abc\x01\x01", "Invalid scheme in OAUTHBEARER"),
    "channel binding": (b"y,,\x01auth=Bearer abc\x01\x01", "Invalid OAUTHBEARER client first message"),
    "invalid key": (b"n,,\x01au1th=Bearer abc\x01\x01", "Invalid OAUTHBEARER client first message"),
    "not UTF-8": (b"\xff", "Invalid OAUTHBEARER client first message"),
}


@pytest.mark.parametrize(("message", "reason"), INVALID_MESSAGES.values(), ids=INVALID_MESSAGES)
def test_invalid_message_is_rejected_without_a_reason_for_the_client(message: bytes, reason: str) -> None:
    with pytest.raises(SaslError, match=reason) as raised:
        mechanism().evaluate(message)
    assert type(raised.value) is SaslError

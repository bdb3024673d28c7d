"""OAUTHBEARER: the client's message, and the two rounds of a token that is refused."""

import pytest

from sluice.broker.security.sasl.mechanism import SaslAuthenticationError, SaslError
from sluice.broker.security.sasl.oauthbearer import OAuthBearerMechanism
from sluice.broker.security.sasl.unsecured_jws import TokenValidator
from tests.support.sasl import bearer, token

NOW_MS = 1_700_000_000_000
GOOD = token({"sub": "carol", "exp": NOW_MS / 1000 + 60})
EXPIRED = token({"sub": "carol", "exp": NOW_MS / 1000})


def mechanism(**options: str) -> OAuthBearerMechanism:
    return OAuthBearerMechanism(TokenValidator(options), lambda: NOW_MS)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(bearer(GOOD), id="a token"),
        pytest.param(bearer(GOOD, "carol"), id="an authorization id that is the principal"),
        pytest.param(bearer(GOOD, extensions="\x01logicalCluster=lkc-1\x01a=b"), id="extensions"),
        pytest.param(bearer(GOOD).replace(b"Bearer", b"bEARER  "), id="a scheme in other case, blanks"),
    ],
)
def test_the_bearer_of_a_good_token_gets_in_for_as_long_as_it_is_good(message: bytes) -> None:
    server = mechanism()
    assert server.evaluate(message) == b""
    assert (server.user, server.expires_at_ms) == ("carol", NOW_MS + 60_000)


@pytest.mark.parametrize(
    ("server", "compact", "told", "reason"),
    [
        pytest.param(mechanism(), EXPIRED, '{"status":"invalid_token"}', "invalid_token: expired (exp)", id="expired"),
        pytest.param(
            mechanism(unsecuredValidatorRequiredScope="a b"),
            GOOD,
            '{"status":"insufficient_scope", "scope":"[a, b]"}',
            "insufficient_scope: a scope is missing (scope)",
            id="without its scope",
        ),
    ],
)
def test_of_a_bad_token_the_client_is_told_and_refused_when_it_has_seen(
    server: OAuthBearerMechanism, compact: str, told: str, reason: str
) -> None:
    assert server.evaluate(bearer(compact)).decode() == told
    assert server.user is None
    with pytest.raises(SaslAuthenticationError) as raised:
        server.evaluate(b"\x01")
    assert (raised.value.client_message, raised.value.reason) == (told, reason)


def test_after_a_bad_token_a_good_one_will_do() -> None:
    server = mechanism()
    server.evaluate(bearer(EXPIRED))
    assert (server.evaluate(bearer(GOOD)), server.user) == (b"", "carol")


def test_nobody_logs_in_as_someone_else() -> None:
    with pytest.raises(SaslAuthenticationError, match=r"authorization id \(bob\) that is different .* \(carol\)"):
        mechanism().evaluate(bearer(GOOD, "bob"))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        pytest.param(b"\x01", "Invalid OAUTHBEARER client first message", id="the end without a beginning"),
        pytest.param(b"n,,\x01\x01", "'auth' not specified", id="no auth"),
        pytest.param(b"n,,\x01auth=Bearer\x01\x01", "invalid 'auth' format", id="no token"),
        pytest.param(b"n,,\x01auth=Basic abc\x01\x01", "Invalid scheme in OAUTHBEARER", id="another scheme"),
        pytest.param(b"y,,\x01auth=Bearer abc\x01\x01", "Invalid OAUTHBEARER client first message", id="binding"),
        pytest.param(b"n,,\x01au1th=Bearer abc\x01\x01", "Invalid OAUTHBEARER client first message", id="a bad key"),
        pytest.param(b"\xff", "Invalid OAUTHBEARER client first message", id="not UTF-8"),
    ],
)
def test_another_message_is_refused_without_a_word_of_why(message: bytes, reason: str) -> None:
    with pytest.raises(SaslError, match=reason) as raised:
        mechanism().evaluate(message)
    assert type(raised.value) is SaslError

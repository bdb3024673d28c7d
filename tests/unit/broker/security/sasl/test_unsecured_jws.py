"""Unsecured tokens: which are good, and why the others are not."""

import base64
from typing import Any

import pytest

from sluice.broker.security.sasl.unsecured_jws import IllegalTokenError, Token, TokenValidator
from tests.support.sasl import token

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS / 1000
IN_AN_HOUR = NOW_MS + 3_600_000
GOOD = {"sub": "carol", "iat": NOW_S, "exp": NOW_S + 3600}


def validate(claims: dict[str, Any], **options: str) -> Token:
    named = {f"unsecuredValidator{name}": value for name, value in options.items()}
    return TokenValidator(named).validate(token(claims), NOW_MS)


@pytest.mark.parametrize(
    ("claims", "options", "expected"),
    [
        pytest.param(GOOD, {}, ("carol", IN_AN_HOUR), id="name, issue and expiration"),
        pytest.param({"sub": "c", "exp": NOW_S + 0.5}, {}, ("c", NOW_MS + 500), id="half a second, never issued"),
        pytest.param(GOOD | {"user": "u"}, {"PrincipalClaimName": "user"}, ("u", IN_AN_HOUR), id="another claim"),
        pytest.param(
            GOOD | {"iat": NOW_S + 5, "exp": NOW_S + 6},
            {"AllowableClockSkewMs": "5000"},
            ("carol", NOW_MS + 6000),
            id="a clock ahead",
        ),
        pytest.param(
            GOOD | {"iat": 1, "exp": NOW_S - 4},
            {"AllowableClockSkewMs": "5000"},
            ("carol", NOW_MS - 4000),
            id="behind",
        ),
        pytest.param(
            GOOD | {"scope": ["a", " b "]},
            {"RequiredScope": "a b"},
            ("carol", IN_AN_HOUR),
            id="scopes in a list",
        ),
        pytest.param(
            GOOD | {"s": "a"},
            {"RequiredScope": "a", "ScopeClaimName": "s"},
            ("carol", IN_AN_HOUR),
            id="one scope",
        ),
    ],
)
def test_a_good_token_says_who_and_how_long(
    claims: dict[str, Any], options: dict[str, str], expected: tuple[str, int]
) -> None:
    assert validate(claims, **options) == expected


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        pytest.param({"exp": NOW_S + 1}, "no principal name in the claim sub", id="nobody"),
        pytest.param(GOOD | {"sub": " "}, "no principal name in the claim sub", id="a blank name"),
        pytest.param(GOOD | {"sub": 7}, "no principal name in the claim sub", id="a number for a name"),
        pytest.param({"sub": "c"}, "no expiration time in the claim exp", id="no expiration"),
        pytest.param(GOOD | {"exp": "soon"}, "the claim exp is not a number", id="a text for a time"),
        pytest.param(GOOD | {"iat": True}, "the claim iat is not a number", id="a truth for a time"),
        pytest.param(GOOD | {"exp": float("nan")}, "the claim exp is not a number", id="not a number"),
        pytest.param(GOOD | {"exp": float("inf")}, "the claim exp is not a number", id="for ever"),
        pytest.param(GOOD | {"iat": NOW_S + 1}, "issued in the future (iat)", id="from the future"),
        pytest.param(GOOD | {"exp": NOW_S}, "expired (exp)", id="expired this moment"),
        pytest.param(
            GOOD | {"iat": NOW_S, "exp": NOW_S - 0.0001}, "expired (exp)", id="the expiration is looked at first"
        ),
        pytest.param(GOOD | {"scope": 5}, "the claim scope is a number", id="a number for a scope"),
    ],
)
def test_a_bad_token_is_refused(claims: dict[str, Any], reason: str) -> None:
    with pytest.raises(IllegalTokenError) as raised:
        validate(claims)
    assert (str(raised.value), raised.value.scope) == (reason, None)


def test_what_expired_before_it_was_issued_is_refused_whatever_the_clocks_say() -> None:
    with pytest.raises(IllegalTokenError, match="expired before it was issued"):
        validate({"sub": "c", "iat": NOW_S, "exp": NOW_S}, AllowableClockSkewMs="1000")


@pytest.mark.parametrize("scope", [None, "a", ["b"], "a b", []], ids=["none", "half", "a list", "one text", "[]"])
def test_a_scope_that_is_missing_is_told(scope: object) -> None:
    with pytest.raises(IllegalTokenError) as raised:
        validate(GOOD | ({} if scope is None else {"scope": scope}), RequiredScope="a  b")
    assert raised.value.scope == "[a, b]"


@pytest.mark.parametrize(
    ("compact", "reason"),
    [
        pytest.param("abc", "expected three parts", id="one part"),
        pytest.param("e30..", "expected three parts", id="an empty part"),
        pytest.param("e30.e30.e30.", "expected three parts", id="four parts"),
        pytest.param("!.e30.", "expected JSON in base64url", id="not base64"),
        pytest.param("e30.YQ.", "expected JSON in base64url", id="not JSON"),
        pytest.param(
            base64.urlsafe_b64encode(b"[" * 100_000).decode() + ".e30.",
            "expected JSON",
            id="deep JSON",
        ),
        pytest.param("W10.e30.", "got another algorithm", id="a list for a header"),
        pytest.param(token(GOOD, {"alg": "HS256"}), "got another algorithm", id="another algorithm"),
        pytest.param(token(GOOD) + "c2ln", "got one with a signature", id="a signature"),
    ],
)
def test_what_is_no_unsecured_token_is_refused(compact: str, reason: str) -> None:
    with pytest.raises(IllegalTokenError, match=reason):
        TokenValidator({}).validate(compact, NOW_MS)


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("AllowableClockSkewMs", "-1", "expected milliseconds of at least 0"),
        ("AllowableClockSkewMs", "soon", "expected milliseconds of at least 0"),
        ("RequiredScope", 'a "b"', 'invalid scope "b"'),
    ],
    ids=["a negative skew", "no number", "no scope"],
)
def test_an_option_that_cannot_be_is_told(option: str, value: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^unsecuredValidator{option}: {problem}"):
        TokenValidator({f"unsecuredValidator{option}": value})

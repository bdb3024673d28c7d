"""Unsecured tokens: claims, options, and reasons for rejection."""

import base64
from typing import Any

import pytest

from sluice.broker.security.sasl.unsecured_jws import IllegalTokenError, Token, TokenValidator, _claim
from tests.support.sasl import token

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS / 1000
IN_AN_HOUR = NOW_MS + 3_600_000
GOOD = {"sub": "carol", "iat": NOW_S, "exp": NOW_S + 3600}


def validate(claims: dict[str, Any], **options: str) -> Token:
    named = {f"unsecuredValidator{name}": value for name, value in options.items()}
    return TokenValidator(named).validate(token(claims), NOW_MS)


VALID_TOKENS = {
    "name, issue and expiration": (GOOD, {}, ("carol", IN_AN_HOUR)),
    "fractional expiration, no issue time": ({"sub": "c", "exp": NOW_S + 0.5}, {}, ("c", NOW_MS + 500)),
    "other claim for the name": (GOOD | {"user": "u"}, {"PrincipalClaimName": "user"}, ("u", IN_AN_HOUR)),
    "clock skew, issued in the future": (
        GOOD | {"iat": NOW_S + 5, "exp": NOW_S + 6},
        {"AllowableClockSkewMs": "5000"},
        ("carol", NOW_MS + 6000),
    ),
    "clock skew, just expired": (
        GOOD | {"iat": 1, "exp": NOW_S - 4},
        {"AllowableClockSkewMs": "5000"},
        ("carol", NOW_MS - 4000),
    ),
    "list of scopes": (GOOD | {"scope": ["a", " b "]}, {"RequiredScope": "a b"}, ("carol", IN_AN_HOUR)),
    "number in another claim that is too large": (GOOD | {"n": 10**400}, {}, ("carol", IN_AN_HOUR)),
    "expiration after the last millisecond": (GOOD | {"exp": 1e17}, {}, ("carol", 2**63 - 1)),
    "expiration with infinite milliseconds": (GOOD | {"exp": 1e306}, {}, ("carol", 2**63 - 1)),
    "single scope": (GOOD | {"s": "a"}, {"RequiredScope": "a", "ScopeClaimName": "s"}, ("carol", IN_AN_HOUR)),
}


@pytest.mark.parametrize(("claims", "options", "expected"), VALID_TOKENS.values(), ids=VALID_TOKENS)
def test_valid_token_returns_user_and_expiration(
    claims: dict[str, Any], options: dict[str, str], expected: tuple[str, int]
) -> None:
    assert validate(claims, **options) == expected


INVALID_CLAIMS = {
    "no name": ({"exp": NOW_S + 1}, "no principal name in the claim sub"),
    "blank name": (GOOD | {"sub": " "}, "no principal name in the claim sub"),
    "numeric name": (GOOD | {"sub": 7}, "no principal name in the claim sub"),
    "name with a lone surrogate": (GOOD | {"sub": "\ud800"}, "the claim sub is not valid Unicode"),
    "long name": (GOOD | {"sub": "é" * 16384}, "the claim sub has 32768 bytes; expected at most 32767"),
    "no expiration": ({"sub": "c"}, "no expiration time in the claim exp"),
    "text as time": (GOOD | {"exp": "soon"}, "the claim exp is not a number"),
    "boolean as time": (GOOD | {"iat": True}, "the claim iat is not a number"),
    "not a number": (GOOD | {"exp": float("nan")}, "the claim exp is not a number"),
    "infinite expiration": (GOOD | {"exp": float("inf")}, "the claim exp is not a number"),
    "integer that is too large": (GOOD | {"exp": 10**400}, "the claim exp is not a number"),
    "issued in the future": (GOOD | {"iat": NOW_S + 1}, "issued in the future (iat)"),
    "expires now": (GOOD | {"exp": NOW_S}, "expired (exp)"),
    "expiration is checked first": (GOOD | {"iat": NOW_S, "exp": NOW_S - 0.0001}, "expired (exp)"),
    "numeric scope": (GOOD | {"scope": 5}, "the claim scope is a number"),
}


@pytest.mark.parametrize(("claims", "reason"), INVALID_CLAIMS.values(), ids=INVALID_CLAIMS)
def test_invalid_claim_is_rejected(claims: dict[str, Any], reason: str) -> None:
    with pytest.raises(IllegalTokenError) as raised:
        validate(claims)
    assert (str(raised.value), raised.value.scope) == (reason, None)


def test_claim_with_too_many_levels_is_rejected() -> None:
    """JSON can have a few more levels than what can be converted to text."""
    levels: dict[str, object] = {}
    for _ in range(100_000):
        levels = {"a": levels}
    with pytest.raises(IllegalTokenError, match="the claim sub has too many levels"):
        _claim({"sub": levels}, "sub")


def test_token_that_expired_before_its_issue_is_rejected_despite_clock_skew() -> None:
    with pytest.raises(IllegalTokenError, match="expired before it was issued"):
        validate({"sub": "c", "iat": NOW_S, "exp": NOW_S}, AllowableClockSkewMs="1000")


MISSING_SCOPES = {"none": None, "one of two": "a", "list": ["b"], "text": "a b", "empty list": []}


@pytest.mark.parametrize("scope", MISSING_SCOPES.values(), ids=MISSING_SCOPES)
def test_missing_scope_is_reported(scope: object) -> None:
    with pytest.raises(IllegalTokenError) as raised:
        validate(GOOD | ({} if scope is None else {"scope": scope}), RequiredScope="a  b")
    assert raised.value.scope == "[a, b]"


MALFORMED = {
    "one part": ("abc", "expected three parts"),
    "empty part": ("e30..", "expected three parts"),
    "four parts": ("e30.e30.e30.", "expected three parts"),
    "not base64": ("!.e30.", "expected JSON in base64url"),
    "not JSON": ("e30.YQ.", "expected JSON in base64url"),
    "deep JSON": (base64.urlsafe_b64encode(b"[" * 100_000).decode() + ".e30.", "expected JSON"),
    "list as header": ("W10.e30.", "got another algorithm"),
    "other algorithm": (token(GOOD, {"alg": "HS256"}), "got another algorithm"),
    "signature": (token(GOOD) + "c2ln", "got one with a signature"),
}


@pytest.mark.parametrize(("compact", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_token_is_rejected(compact: str, reason: str) -> None:
    with pytest.raises(IllegalTokenError, match=reason):
        TokenValidator({}).validate(compact, NOW_MS)


INVALID_OPTIONS = {
    "negative skew": ("AllowableClockSkewMs", "-1", "expected milliseconds of at least 0"),
    "skew not a number": ("AllowableClockSkewMs", "soon", "expected milliseconds of at least 0"),
    "invalid scope": ("RequiredScope", 'a "b"', 'invalid scope "b"'),
}


@pytest.mark.parametrize(("option", "value", "problem"), INVALID_OPTIONS.values(), ids=INVALID_OPTIONS)
def test_invalid_option_is_rejected(option: str, value: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^unsecuredValidator{option}: {problem}"):
        TokenValidator({f"unsecuredValidator{option}": value})

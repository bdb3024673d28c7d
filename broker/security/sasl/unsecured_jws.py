"""Unsecured JSON Web Signatures (RFC 7515, appendix A.5) and their validation.

Follows OAuthBearerUnsecuredJws, OAuthBearerUnsecuredValidatorCallbackHandler and OAuthBearerValidationUtils, Kafka's
default for OAUTHBEARER, which is not for production. Different on purpose: only claims in use are converted, and of a
list of scopes only the items that are text; principal names are bounded.
"""

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from math import floor, inf, isfinite
from typing import NamedTuple

from sluice.protocol.codec.wire import LONGEST_STRING

_OPTION = "unsecuredValidator"
_SCOPE_ITEM = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]+")
_BASE64_URL = re.compile(r"[A-Za-z0-9_-]*=*")
_SPLITS = 3
LAST_MS = 2**63 - 1

Claim = str | float | list[str]


class IllegalTokenError(Exception):
    """An invalid token; `scope` is the scope that it lacks."""

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope


class Token(NamedTuple):
    principal: str
    expires_at_ms: int


class TokenValidator:
    def __init__(self, options: Mapping[str, str]) -> None:
        """Read the options. Raises ValueError with the name of an invalid one."""
        self._principal_claim = _option(options, "PrincipalClaimName") or "sub"
        self._scope_claim = _option(options, "ScopeClaimName") or "scope"
        self._required_scope = _option(options, "RequiredScope").split()
        for item in self._required_scope:
            if not _SCOPE_ITEM.fullmatch(item):
                raise ValueError(f"{_OPTION}RequiredScope: invalid scope {item}")
        skew_text = _option(options, "AllowableClockSkewMs") or "0"
        if not (skew_text.isascii() and skew_text.isdigit()):
            raise ValueError(f"{_OPTION}AllowableClockSkewMs: expected milliseconds of at least 0")
        self._skew_ms = int(skew_text)

    def validate(self, compact: str, now_ms: int) -> Token:
        claims = _unsecured_claims(compact)
        principal = principal_of(_claim(claims, self._principal_claim), self._principal_claim)
        issued_s, expires_s = _seconds(claims, "iat"), _seconds(claims, "exp")
        if expires_s is None:
            raise IllegalTokenError("no expiration time in the claim exp")
        if issued_s is not None and 1000 * issued_s > now_ms + self._skew_ms:
            raise IllegalTokenError("issued in the future (iat)")
        if now_ms - self._skew_ms >= 1000 * expires_s:
            raise IllegalTokenError("expired (exp)")
        if issued_s is not None and expires_s <= issued_s:
            raise IllegalTokenError("expired before it was issued (exp, iat)")
        self._check_scope(_claim(claims, self._scope_claim))
        expires_ms = expires_s * 1000 + 0.5
        return Token(principal, floor(expires_ms) if expires_ms < LAST_MS else LAST_MS)

    def _check_scope(self, claim: Claim | None) -> None:
        if isinstance(claim, float):
            raise IllegalTokenError(f"the claim {self._scope_claim} is a number")
        # As in Kafka, a claim of type string is a single scope, including its blanks.
        given = [claim] if isinstance(claim, str) else claim or []
        if not {scope.strip() for scope in given}.issuperset(self._required_scope):
            raise IllegalTokenError(f"a scope is missing ({self._scope_claim})", f"[{', '.join(self._required_scope)}]")


def _option(options: Mapping[str, str], name: str) -> str:
    return options.get(f"{_OPTION}{name}", "").strip()


def principal_of(value: object, claim: str) -> str:
    """Return the value of the claim. Raises IllegalTokenError."""
    if not isinstance(value, str) or not value.strip():
        raise IllegalTokenError(f"no principal name in the claim {claim}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:  # half of a surrogate pair
        raise IllegalTokenError(f"the claim {claim} is not valid Unicode") from None
    if size > LONGEST_STRING:
        raise IllegalTokenError(f"the claim {claim} has {size} bytes; expected at most {LONGEST_STRING}")
    return value


def claims_of(compact: str) -> dict[str, object]:
    """Return the claims of a token, secured or not, without any validation. Raises IllegalTokenError."""
    return _object(_split(compact)[1])


def _unsecured_claims(compact: str) -> dict[str, object]:
    splits = _split(compact)
    header, claims = _object(splits[0]), _object(splits[1])
    if header.get("alg") != "none":
        raise IllegalTokenError("expected an unsecured token (alg none), got another algorithm")
    if splits[2]:
        raise IllegalTokenError("expected an unsecured token, got one with a signature")
    return claims


def _split(compact: str) -> list[str]:
    splits = compact.split(".")
    if len(splits) != _SPLITS or ".." in compact:
        raise IllegalTokenError("expected three parts separated by dots, the third one empty")
    return splits


def _object(part: str) -> dict[str, object]:
    try:
        if not _BASE64_URL.fullmatch(part):
            raise ValueError
        members = json.loads(b64decode(part + "=" * (-len(part) % 4), altchars=b"-_"))
    except (ValueError, RecursionError):
        raise IllegalTokenError("expected JSON in base64url") from None
    return members if isinstance(members, dict) else {}


def _claim(claims: Mapping[str, object], name: str) -> Claim | None:
    if name not in claims:
        return None
    value = claims[name]
    if isinstance(value, list):
        return [item for item in value if isinstance(item, str)]
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return inf
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except RecursionError:
        raise IllegalTokenError(f"the claim {name} has too many levels") from None


def _seconds(claims: Mapping[str, object], name: str) -> float | None:
    value = _claim(claims, name)
    if value is not None and not (isinstance(value, float) and isfinite(value)):
        raise IllegalTokenError(f"the claim {name} is not a number")
    return value

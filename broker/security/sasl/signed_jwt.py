"""Signed JSON Web Tokens, verified with a JSON Web Key Set (RFC 7517, RFC 7519).

Follows Kafka's BrokerJwtValidator and RefreshingHttpsJwks, which `sasl.oauthbearer.jwks.endpoint.url` enables: an
unknown key id fails, and makes the keys load again. Different on purpose: only files and loopback addresses.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from time import monotonic  # noqa: TID251  (real time: the server of the keys is outside of virtual time)
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import url2pathname, urlopen

import jwt

from sluice.config.listener_config import ListenerConfig
from sluice.text.error_text import expected

from .unsecured_jws import LAST_MS, IllegalTokenError, Token, principal_of

URL = "sasl.oauthbearer.jwks.endpoint.url"
_REFRESH = "sasl.oauthbearer.jwks.endpoint.refresh.ms"
_AUDIENCE, _ISSUER = "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer"
_ANY_AUDIENCE = "sasl.oauthbearer.allow.unverified.audience"
_ANY_ISSUER = "sasl.oauthbearer.allow.unverified.issuer"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_TIMEOUT_S = 5.0
_FIRST_LOAD_S = 1.0  # a start waits no longer for the keys
_RETRY_S = 0.1  # between two loads (sasl.oauthbearer.jwks.endpoint.retry.backoff.ms)
# Times are checked with the broker's clock, which may be virtual.
_CHECKS: "jwt.types.Options" = {
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
    "require": ["exp", "iat"],
}


class FileKeys:
    """The keys of a file, which is read again when it changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: float | None = None
        self._keys: list[jwt.PyJWK] = []
        self.key(None)

    def key(self, key_id: str | None) -> jwt.PyJWK | None:
        """Return the key; without an id the only one."""
        changed_at = self._path.stat().st_mtime_ns
        if changed_at != self._read_at:
            self._keys, self._read_at = _keys(self._path.read_bytes()), changed_at
        return _find(self._keys, key_id)


class HttpKeys:
    """The keys of a server, loaded by a thread, because the broker's process may run the server."""

    def __init__(self, url: str, refresh_s: float) -> None:
        self._url = url
        self._refresh_s = refresh_s
        self._keys: list[jwt.PyJWK] = []
        self._started_s = 0.0
        self._thread = Thread()
        self._load()
        self._thread.join(_FIRST_LOAD_S)

    def key(self, key_id: str | None) -> jwt.PyJWK | None:
        found = _find(self._keys, key_id)
        age_s = monotonic() - self._started_s
        if age_s > self._refresh_s or (found is None and age_s > _RETRY_S):
            self._load()
        return found

    def _load(self) -> None:
        if self._thread.is_alive():
            return
        self._started_s = monotonic()
        self._thread = Thread(target=self._read, name="jwks", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            with urlopen(self._url, timeout=_TIMEOUT_S) as response:  # noqa: S310  (http on loopback, see `_open`)
                self._keys = _keys(response.read())
        except (URLError, OSError, ValueError):
            return  # with the former keys, until the next attempt


class SignedTokenValidator:
    """See `TokenValidator`."""

    def __init__(self, config: ListenerConfig) -> None:
        """Raise ConfigError for invalid settings."""
        self._audience = list(config.names(_AUDIENCE)) or None
        self._issuer = config.text(_ISSUER) or None
        needed = ((_AUDIENCE, self._audience, _ANY_AUDIENCE), (_ISSUER, self._issuer, _ANY_ISSUER))
        for name, value, opt_out in needed:
            if not value and not config.boolean(opt_out):
                raise config.wrong(name, f"must be set for signed tokens, unless {opt_out} is true")
        self._skew_ms = config.integer("sasl.oauthbearer.clock.skew.seconds") * 1000
        self._subject_claim = config.text("sasl.oauthbearer.sub.claim.name") or "sub"
        self._scope_claim = config.text("sasl.oauthbearer.scope.claim.name") or "scope"
        self._keys = _open(config)

    def validate(self, compact: str, now_ms: int) -> Token:
        claims = self._verified(compact)
        expires_ms, issued_ms = (_milliseconds(claims, name) for name in ("exp", "iat"))
        if now_ms - self._skew_ms >= expires_ms:
            raise IllegalTokenError("expired (exp)")
        if issued_ms > now_ms + self._skew_ms:
            raise IllegalTokenError("issued in the future (iat)")
        if "nbf" in claims and _milliseconds(claims, "nbf") > now_ms + self._skew_ms:
            raise IllegalTokenError("not valid yet (nbf)")
        subject, scope = claims.get(self._subject_claim), claims.get(self._scope_claim, "")
        principal = principal_of(subject, self._subject_claim)
        if not isinstance(scope, str | list):
            raise IllegalTokenError(f"the claim {self._scope_claim} is not text or a list")
        return Token(principal.strip(), expires_ms)

    def _verified(self, compact: str) -> Mapping[str, object]:
        try:
            key = self._keys.key(jwt.get_unverified_header(compact).get("kid"))
            if key is None:
                raise IllegalTokenError("signed with an unknown key (kid)")
            options = _CHECKS if self._audience else {**_CHECKS, "verify_aud": False}
            return jwt.decode(
                compact, key, algorithms=_ALGORITHMS, audience=self._audience, issuer=self._issuer, options=options
            )
        except (jwt.PyJWTError, OSError, ValueError) as error:
            raise IllegalTokenError(str(error)) from None


def _open(config: ListenerConfig) -> FileKeys | HttpKeys:
    url = config.text(URL) or ""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return _read_file(config, Path(url2pathname(parts.path)))
    if parts.scheme in ("http", "https") and parts.hostname in _LOOPBACK:
        return HttpKeys(url, config.integer(_REFRESH) / 1000)
    raise config.wrong(URL, expected("file:///PATH, or http://HOST:PORT/PATH on a loopback address", url))


def _read_file(config: ListenerConfig, path: Path) -> FileKeys:
    try:
        return FileKeys(path)
    except OSError as error:
        raise config.wrong(URL, f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, jwt.PyJWTError) as error:
        raise config.wrong(URL, f"{path}: expected a JSON Web Key Set: {error}") from None


def _keys(text: bytes) -> list[jwt.PyJWK]:
    try:
        return jwt.PyJWKSet.from_dict(json.loads(text)).keys
    except (jwt.PyJWTError, AttributeError, TypeError) as error:
        raise ValueError(str(error)) from None


def _find(keys: list[jwt.PyJWK], key_id: str | None) -> jwt.PyJWK | None:
    if key_id is None:
        return keys[0] if len(keys) == 1 else None
    return next((key for key in keys if key.key_id == key_id), None)


def _milliseconds(claims: Mapping[str, object], name: str) -> int:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise IllegalTokenError(f"the claim {name} is not a number")
    try:
        return min(int(value * 1000), LAST_MS)
    except (OverflowError, ValueError):
        raise IllegalTokenError(f"the claim {name} is not a number") from None

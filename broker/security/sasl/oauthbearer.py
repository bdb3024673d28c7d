"""OAUTHBEARER: authentication by a bearer token (RFC 7628; Kafka's OAuthBearerSaslServer, KIP-255)."""

import re
from collections.abc import Callable

from .mechanism import Mechanism, SaslAuthenticationError, SaslError
from .unsecured_jws import IllegalTokenError, Token

_SASLNAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_INITIAL = re.compile(rf"n,(?:a=(?P<authzid>{_SASLNAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_ACKNOWLEDGEMENT = b"\x01"


# From a token and the wall clock (ms) to the token's principal and expiration. Raises IllegalTokenError.
Validate = Callable[[str, int], Token]


class OAuthBearerMechanism(Mechanism):
    def __init__(self, validate: Validate, now_ms: Callable[[], int]) -> None:
        self._validate = validate
        self._now_ms = now_ms
        self._refusal: SaslAuthenticationError | None = None  # sent to the client, raised when it acknowledges

    def evaluate(self, token: bytes) -> bytes:
        if token == _ACKNOWLEDGEMENT and self._refusal is not None:
            raise self._refusal
        authorization_id, compact = read_first(token)
        try:
            shown = self._validate(compact, self._now_ms())
        except IllegalTokenError as error:
            status, scope = "invalid_token", ""
            if error.scope is not None:
                status, scope = "insufficient_scope", f', "scope":"{error.scope}"'
            response = f'{{"status":"{status}"{scope}}}'
            self._refusal = SaslAuthenticationError(response, f"{status}: {error}")
            self.objection = self._refusal.reason
            return response.encode()
        if authorization_id not in ("", shown.principal):
            raise SaslAuthenticationError(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different "
                f"from the token's principal name ({shown.principal})"
            )
        self.user, self.expires_at_ms = shown.principal, shown.expires_at_ms
        return b""


def read_first(message: bytes) -> tuple[str, str]:
    """Return authorization id and token; extensions are ignored. Raises SaslError."""
    match = _INITIAL.fullmatch(message.decode(errors="replace"))
    if match is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = (pair.partition("=") for pair in match["pairs"].split("\x01"))
    auth = {key: value for key, _, value in pairs}.get("auth")
    if auth is None:
        raise SaslError("Invalid OAUTHBEARER client first message: 'auth' not specified")
    bearer = _AUTH.fullmatch(auth)
    if bearer is None:
        raise SaslError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    if bearer["scheme"].lower() != "bearer":
        raise SaslError(f"Invalid scheme in OAUTHBEARER client first message: {bearer['scheme']}")
    return match["authzid"] or "", bearer["token"]

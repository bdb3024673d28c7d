"""PLAIN: name and password in one token (RFC 4616; Kafka's PlainSaslServer and PlainServerCallbackHandler)."""

from collections.abc import Mapping
from hmac import compare_digest

from .mechanism import Mechanism, SaslAuthenticationError

_TOKENS = 3


class PlainMechanism(Mechanism):
    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def evaluate(self, token: bytes) -> bytes:
        tokens = tokens_of(token)
        if len(tokens) != _TOKENS:
            raise SaslAuthenticationError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}")
        authorization_id, name, password = tokens
        if not name:
            raise SaslAuthenticationError("Authentication failed: username not specified")
        if not password:
            raise SaslAuthenticationError("Authentication failed: password not specified")
        expected = self._passwords.get(name)
        if expected is None or not compare_digest(expected.encode(), password.encode()):
            raise SaslAuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in ("", name):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.user = name
        return b""


def tokens_of(message: bytes) -> list[str]:
    """Return authorization id, name and password, or another number of tokens if the message is malformed."""
    return message.decode(errors="replace").split("\0", _TOKENS)

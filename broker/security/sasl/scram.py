"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677; Kafka's ScramSaslServer and ScramMessages, KIP-84).

As in Kafka: no channel binding, no SASLprep; extensions are ignored; an unknown user fails in the first round, with the
message of a wrong password. Existing libraries reject salts below 12 bytes and normalize names.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import new as hash_of
from hmac import compare_digest
from hmac import digest as hmac
from typing import NamedTuple

from .mechanism import Mechanism, SaslAuthenticationError, SaslError
from .scram_credentials import MIN_ITERATIONS, ScramCredential, ScramCredentials, ScramMechanism

_SASLNAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"  # no comma
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_FIRST = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASLNAME}))?,(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASLNAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(
    rf"(?P<without_proof>c={_BASE64},r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})", re.ASCII
)


class ClientFirst(NamedTuple):
    """The first message of a client."""

    user: str
    authorization_id: str | None
    nonce: str
    bare: str
    extensions: str  # `,NAME=VALUE` each


class _Exchange(NamedTuple):
    user: str
    credential: ScramCredential
    nonce: str
    client_first: str
    server_first: str


class ScramServerMechanism(Mechanism):
    def __init__(self, mechanism: ScramMechanism, credentials: ScramCredentials, new_nonce: Callable[[], str]) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._new_nonce = new_nonce
        self._exchange: _Exchange | None = None

    def evaluate(self, token: bytes) -> bytes:
        if self._exchange is None:
            self._exchange = self._first(read_first(token))
            return self._exchange.server_first.encode()
        signature = self._prove(self._exchange, token.decode(errors="replace"))
        self.user = self._exchange.user
        return b"v=" + b64encode(signature)

    def _first(self, first: ClientFirst) -> _Exchange:
        credential = self._credentials.get(first.user, self._mechanism)
        if credential is None:
            raise SaslError("Authentication failed: Invalid user credentials")
        if first.authorization_id not in (None, first.user):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        if credential.iterations < MIN_ITERATIONS:
            name = self._mechanism.sasl_name
            raise SaslError(f"Iterations {credential.iterations} is less than the minimum {MIN_ITERATIONS} for {name}")
        nonce = first.nonce + self._new_nonce()
        server_first = f"r={nonce},s={b64encode(credential.salt).decode()},i={credential.iterations}"
        return _Exchange(first.user, credential, nonce, first.bare, server_first)

    def _prove(self, exchange: _Exchange, text: str) -> bytes:
        match = _FINAL.fullmatch(text)
        if match is None:
            raise SaslError("Invalid SCRAM client final message format")
        if match["nonce"] != exchange.nonce:
            raise SaslError("Invalid client nonce in the final client message.")
        name, credential = self._mechanism.hash_name, exchange.credential
        message = f"{exchange.client_first},{exchange.server_first},{match['without_proof']}".encode()
        signature = hmac(credential.stored_key, message, name)
        proof = b64decode(match["proof"])
        client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=False))
        if len(proof) != len(signature) or not compare_digest(
            hash_of(name, client_key).digest(), credential.stored_key
        ):
            raise SaslError("Invalid client credentials")
        return hmac(credential.server_key, message, name)


def read_first(message: bytes) -> ClientFirst:
    """Raise SaslError if the message is malformed."""
    match = _FIRST.fullmatch(message.decode(errors="replace"))
    if match is None:
        raise SaslError("Invalid SCRAM client first message format")
    user = match["name"].replace("=2C", ",").replace("=3D", "=")
    return ClientFirst(user, match["authzid"], match["nonce"], match["bare"], match["extensions"])

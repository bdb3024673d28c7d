"""SASL authentication with PLAIN and SCRAM (RFC 5802), sans-I/O (Kafka's SaslClientAuthenticator).

A conversation is a generator: it yields requests, receives responses through `send`, and returns after success.

Different on purpose: no ApiVersions request comes first, because all brokers since 1.0 support SaslHandshake 1 and
SaslAuthenticate 0.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator, Mapping
from secrets import token_urlsafe

from sluice.client.errors import SaslAuthenticationException, exception_of
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from sluice.protocol.message import Message

from . import in_flight
from .in_flight import Request
from .tls import CHECK_PROTOCOL

Conversation = Generator[Message, Message, None]
Tokens = Generator[bytes, bytes, None]

HANDSHAKE_VERSION = 1
AUTHENTICATE_VERSION = 0
_NONCE_BYTES = 18
_LEAST_ITERATIONS = 4096  # of Kafka's ScramMechanism
_MOST_ITERATIONS = 100_000  # 50 ms of CPU; Kafka's brokers store at most 16,384


def plain(options: Mapping[str, str]) -> Tokens:
    yield f"\0{options['username']}\0{options['password']}".encode()


def scram(hash_name: str, options: Mapping[str, str], nonce: str | None = None) -> Tokens:
    """Yield the SCRAM tokens (RFC 5802), and verify the broker's signature."""
    user = options["username"].replace("=", "=3D").replace(",", "=2C")
    nonce = nonce or token_urlsafe(_NONCE_BYTES)
    first_bare = f"n={user},r={nonce}"
    server_first = (yield f"n,,{first_bare}".encode()).decode()
    fields = _fields(server_first)
    if not fields["r"].startswith(nonce):
        raise SaslAuthenticationException("the broker's nonce does not start with the client's")
    iterations = int(fields["i"])
    if not _LEAST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
        raise SaslAuthenticationException(
            f"the broker requires {iterations} SCRAM iterations; expected {_LEAST_ITERATIONS} to {_MOST_ITERATIONS}"
        )
    salted = hashlib.pbkdf2_hmac(hash_name, options["password"].encode(), b64decode(fields["s"]), iterations)
    final_bare = f"c=biws,r={fields['r']}"
    message = f"{first_bare},{server_first},{final_bare}".encode()
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    signature = hmac.digest(hashlib.new(hash_name, client_key).digest(), message, hash_name)
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    server_final = _fields((yield f"{final_bare},p={b64encode(proof).decode()}".encode()).decode())
    expected = hmac.digest(hmac.digest(salted, b"Server Key", hash_name), message, hash_name)
    if not hmac.compare_digest(b64decode(server_final.get("v", "")), expected):
        raise SaslAuthenticationException("the broker's SCRAM signature is invalid: it does not know the password")


MECHANISMS: dict[str, Callable[[Mapping[str, str]], Tokens]] = {
    "PLAIN": plain,
    "SCRAM-SHA-256": lambda options: scram("sha256", options),
    "SCRAM-SHA-512": lambda options: scram("sha512", options),
}


def conversation(mechanism: str, options: Mapping[str, str]) -> Conversation:
    response = yield SaslHandshakeRequest(mechanism=mechanism)
    assert isinstance(response, SaslHandshakeResponse)
    if response.error_code:
        offered = f"expected one of {', '.join(response.mechanisms)}"
        hint = offered if response.mechanisms else CHECK_PROTOCOL  # a listener without SASL has none
        raise exception_of(response.error_code, f"the broker does not accept {mechanism}; {hint}")
    tokens = MECHANISMS[mechanism](options)
    token = next(tokens)
    while True:
        response = yield SaslAuthenticateRequest(auth_bytes=token)
        assert isinstance(response, SaslAuthenticateResponse)
        if response.error_code:
            raise exception_of(response.error_code, response.error_message)
        try:
            token = tokens.send(response.auth_bytes)
        except StopIteration:
            return
        except (KeyError, ValueError) as error:
            raise SaslAuthenticationException(f"the broker's response is not valid for {mechanism}") from error


def conversations(mechanism: str, options: Mapping[str, str]) -> Callable[[], Conversation]:
    return lambda: conversation(mechanism, options)


def request_of(message: Message) -> Request:
    version = HANDSHAKE_VERSION if isinstance(message, SaslHandshakeRequest) else AUTHENTICATE_VERSION
    return in_flight.request_of(message, oldest=version, latest=version)


def _fields(text: str) -> dict[str, str]:
    return dict(field.split("=", 1) for field in text.split(","))

"""Tokens and messages of SASL clients, and brokers with SASL listeners."""

import base64
import hashlib
import hmac
import json
from typing import Any

from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest
from tests.support.virtual_broker import Client, VirtualBroker

SASL = ("listeners=SASL_PLAINTEXT://127.0.0.1:0", "sluice.sasl.users=alice:alice-secret,bob:bob-secret")
ALL_MECHANISMS = "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"


def plain(user: str = "alice", password: str = "alice-secret", authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{user}\0{password}".encode()


def token(claims: dict[str, Any], header: dict[str, Any] | None = None) -> str:
    """Return an unsecured JSON web token."""
    parts = [json.dumps(part).encode() for part in (header or {"alg": "none"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


def bearer(compact: str, authorization_id: str = "", extensions: str = "") -> bytes:
    authzid = f"a={authorization_id}" if authorization_id else ""
    return f"n,{authzid},\x01auth=Bearer {compact}{extensions}\x01\x01".encode()


class ScramClient:
    """The client side of SCRAM, from RFC 5802 alone."""

    def __init__(self, hash_name: str, user: str, password: str, nonce: str = "fyko+d2lbbFgONRv9qkxdawL") -> None:
        self._hash = hash_name
        self._password = password.encode()
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self.first = f"n,,{self._bare}".encode()
        self.signature = b""  # expected from the broker

    def final(self, server_first: bytes) -> bytes:
        fields = dict(field.split("=", 1) for field in server_first.decode().split(","))
        salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        without_proof = f"c=biws,r={fields['r']}"
        message = f"{self._bare},{server_first.decode()},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = hmac.digest(stored_key, message, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), message, self._hash)
        self.signature = b"v=" + base64.b64encode(server)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def handshake(client: Client, mechanism: str = "PLAIN", version: int = 1) -> Any:
    return client.call(SaslHandshakeRequest(mechanism=mechanism), version)


def authenticate(client: Client, auth_bytes: bytes, version: int = 2) -> Any:
    return client.call(SaslAuthenticateRequest(auth_bytes=auth_bytes), version)


def logged_in(broker: VirtualBroker, user: str = "alice", client_id: str = "client") -> Client:
    """Return a client that is authenticated by PLAIN."""
    client = broker.client(client_id)
    assert handshake(client).error_code == 0
    assert authenticate(client, plain(user, f"{user}-secret")).error_code == 0
    return client

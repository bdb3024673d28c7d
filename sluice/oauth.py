"""Signed tokens for tests of OAUTHBEARER; requires the extra `oauth`.

issuer = TokenIssuer()
async with Broker(config=issuer.broker_config(tmp_path / "jwks.json")) as broker:
    client = Consumer(..., token=issuer.token("alice"))
"""

import json
import time  # noqa: TID251  (clients in virtual time get its time)
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from jwt.algorithms import ECAlgorithm

_ALGORITHM = "ES256"


class TokenIssuer:
    """An issuer with one key. `issuer` and `audience` are the claims of its tokens."""

    def __init__(self, issuer: str = "https://issuer.example", audience: str = "kafka", key_id: str = "1") -> None:
        self.issuer = issuer
        self.audience = audience
        self._key_id = key_id
        self._key = generate_private_key(SECP256R1())

    def jwks(self) -> str:
        """Return the public key as a JSON Web Key Set."""
        public = ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return json.dumps({"keys": [public | {"kid": self._key_id, "use": "sig", "alg": _ALGORITHM}]})

    def token(self, subject: str, *, lifetime_s: float = 3600, **claims: object) -> str:
        """Return a token for a user; `claims` add to the usual ones or replace them."""
        now_s = time.time()
        known = {
            "sub": subject,
            "iss": self.issuer,
            "aud": self.audience,
            "iat": now_s,
            "exp": now_s + lifetime_s,
        }
        return jwt.encode(known | claims, self._key, _ALGORITHM, headers={"kid": self._key_id})

    def broker_config(self, path: Path) -> dict[str, str]:
        """Write the key set to a file; return properties of a broker that accepts the tokens, without TLS."""
        path.write_text(self.jwks(), encoding="utf-8")
        return {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": path.absolute().as_uri(),
            "sasl.oauthbearer.expected.audience": self.audience,
            "sasl.oauthbearer.expected.issuer": self.issuer,
        }

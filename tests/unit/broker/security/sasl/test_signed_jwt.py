"""Signed tokens of OAUTHBEARER: keys, claims, and invalid settings."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sluice.broker.controller.cluster import Cluster
from sluice.broker.requests.runtime import Runtime
from sluice.broker.security.sasl.listener import SaslListener
from sluice.broker.security.sasl.signed_jwt import SignedTokenValidator
from sluice.broker.security.sasl.unsecured_jws import IllegalTokenError
from sluice.clock import ManualClock
from sluice.config.broker_config import Config
from sluice.errors import ConfigError
from sluice.oauth import TokenIssuer
from tests.support.sasl import token as unsecured

NOW_S = 1_700_000_000
TIMES = {"iat": NOW_S, "exp": NOW_S + 60}
ISSUER = TokenIssuer()
URL = "sasl.oauthbearer.jwks.endpoint.url"


def validator(issuer: TokenIssuer, path: Path, **changes: str) -> SignedTokenValidator:
    config = issuer.broker_config(path) | {f"sasl.oauthbearer.{name}": value for name, value in changes.items()}
    return SignedTokenValidator(Config.of(config).of_listener("SASL_PLAINTEXT"))


def test_signed_token_is_accepted_until_it_expires(tmp_path: Path) -> None:
    found = validator(ISSUER, tmp_path / "jwks").validate(ISSUER.token("alice", **TIMES), NOW_S * 1000)
    assert (found.principal, found.expires_at_ms) == ("alice", (NOW_S + 60) * 1000)


INVALID_CLAIMS = {
    "expired by the clock skew": ({"exp": NOW_S - 30}, "expired (exp)"),
    "issued later": ({"iat": NOW_S + 31}, "issued in the future (iat)"),
    "valid later": ({"nbf": NOW_S + 31}, "not valid yet (nbf)"),
    "other audience": ({"aud": "other"}, "Audience doesn't match"),
    "other issuer": ({"iss": "other"}, "Invalid issuer"),
    "infinite expiration": ({"exp": float("inf")}, "the claim exp is not a number"),
    "long subject": ({"sub": "a" * 32768}, "the claim sub has 32768 bytes"),
    "blank subject": ({"sub": " "}, "no principal name in the claim sub"),
    "scope of another type": ({"scope": 1}, "the claim scope is not text or a list"),
    "no expiration": ({"exp": None}, 'Token is missing the "exp" claim'),
}


@pytest.mark.parametrize(("claims", "problem"), INVALID_CLAIMS.values(), ids=INVALID_CLAIMS)
def test_token_with_invalid_claims_is_rejected(tmp_path: Path, claims: dict[str, Any], problem: str) -> None:
    with pytest.raises(IllegalTokenError, match=f"^{re.escape(problem)}"):
        validator(ISSUER, tmp_path / "jwks").validate(ISSUER.token("alice", **(TIMES | claims)), NOW_S * 1000)


def test_expiration_after_the_last_millisecond_is_accepted(tmp_path: Path) -> None:
    late = ISSUER.token("alice", **(TIMES | {"exp": 1e17}))
    found = validator(ISSUER, tmp_path / "jwks").validate(late, NOW_S * 1000)
    assert found.expires_at_ms == 2**63 - 1


def test_claims_within_the_clock_skew_are_accepted(tmp_path: Path) -> None:
    near = {"exp": NOW_S - 29, "iat": NOW_S + 30, "nbf": NOW_S + 30}
    assert validator(ISSUER, tmp_path / "jwks").validate(ISSUER.token("alice", **near), NOW_S * 1000)


OTHER_SIGNERS = {
    "another key": (TokenIssuer().token("alice", **TIMES), "Signature verification failed"),
    "unknown key id": (TokenIssuer(key_id="2").token("alice", **TIMES), "signed with an unknown key (kid)"),
    "unsecured": (unsecured({"sub": "alice", **TIMES}), "The specified alg value is not allowed"),
    "no token": ("x", "Not enough segments"),
}


@pytest.mark.parametrize(("compact", "problem"), OTHER_SIGNERS.values(), ids=OTHER_SIGNERS)
def test_token_of_another_signer_is_rejected(tmp_path: Path, compact: str, problem: str) -> None:
    with pytest.raises(IllegalTokenError, match=f"^{re.escape(problem)}"):
        validator(ISSUER, tmp_path / "jwks").validate(compact, NOW_S * 1000)


def test_user_and_checks_are_configurable(tmp_path: Path) -> None:
    path = tmp_path / "jwks"
    by_client_id = validator(ISSUER, path, **{"sub.claim.name": "client_id", "clock.skew.seconds": "0"})
    assert by_client_id.validate(ISSUER.token("alice", client_id="app", **TIMES), NOW_S * 1000).principal == "app"
    config = {URL: path.as_uri(), "listeners": "SASL_PLAINTEXT://127.0.0.1:0"}
    config |= {f"sasl.oauthbearer.allow.unverified.{claim}": "true" for claim in ("audience", "issuer")}
    anyone = SignedTokenValidator(Config.of(config).of_listener("SASL_PLAINTEXT"))
    assert anyone.validate(ISSUER.token("alice", aud="x", iss="y", **TIMES), NOW_S * 1000).principal == "alice"


def test_changed_file_replaces_the_keys(tmp_path: Path) -> None:
    path, renewed = tmp_path / "jwks", TokenIssuer(key_id="2")
    checked = validator(ISSUER, path)
    both = json.loads(ISSUER.jwks())["keys"] + json.loads(renewed.jwks())["keys"]
    path.write_text(json.dumps({"keys": both}))
    for issuer in (ISSUER, renewed):
        assert checked.validate(issuer.token("alice", **TIMES), NOW_S * 1000)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({URL: "http://issuer.example/jwks"}, f"{URL}: expected file:///PATH, or http://HOST:PORT/PATH on a loopback"),
        ({URL: "file:///no/such/file"}, f"{URL}: /no/such/file: cannot be read: No such file"),
        ({"sasl.oauthbearer.expected.issuer": ""}, "sasl.oauthbearer.expected.issuer: must be set for signed tokens"),
        (
            {"sasl.oauthbearer.expected.audience": ""},
            "sasl.oauthbearer.expected.audience: must be set for signed tokens, unless "
            "sasl.oauthbearer.allow.unverified.audience is true",
        ),
    ],
    ids=["another host", "missing file", "no issuer", "no audience"],
)
def test_invalid_setting_is_a_one_line_error(tmp_path: Path, changes: dict[str, str], problem: str) -> None:
    config = Config.of(ISSUER.broker_config(tmp_path / "jwks") | changes)
    cluster = Cluster(Runtime(config, ManualClock(), Random(0)))
    with pytest.raises(ConfigError, match=re.escape(problem)):
        SaslListener(cluster.config.of_listener("SASL_PLAINTEXT"), cluster.runtime, lambda: cluster.scram_credentials)


def test_file_without_a_key_set_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "jwks"
    config = ISSUER.broker_config(path)
    path.write_text("{}")
    with pytest.raises(ConfigError, match="expected a JSON Web Key Set"):
        SignedTokenValidator(Config.of(config).of_listener("SASL_PLAINTEXT"))

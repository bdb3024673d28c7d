"""SASL on a listener: users, mechanisms, Kafka releases, and errors for invalid settings."""

import re
from random import Random

import pytest

from sluice.broker.controller.cluster import Cluster
from sluice.broker.requests.runtime import Runtime
from sluice.broker.security.sasl.listener import SaslListener
from sluice.clock import ManualClock
from sluice.config.broker_config import Config
from sluice.errors import ConfigError
from tests.support.sasl import authenticate, handshake, plain
from tests.support.virtual_broker import VirtualBroker

LISTENER = "listeners=SASL_PLAINTEXT://127.0.0.1:0"
PLAIN_ONLY = "sasl.enabled.mechanisms=PLAIN"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PREFIX = "listener.name.sasl_plaintext."


def user_of(*overrides: str, user: str = "alice", password: str = "alice-secret") -> str:
    """Return the user of a client that authenticates with PLAIN."""
    client = VirtualBroker(LISTENER, *overrides).client()
    handshake(client)
    authenticate(client, plain(user, password))
    return str(client.connection.ctx.session.user)


def mechanisms(*overrides: str) -> list[str]:
    """Return the mechanisms in a handshake response."""
    response = handshake(VirtualBroker(LISTENER, *overrides).client(), "SCRAM-SHA-256")
    return list(response.mechanisms)


PLAIN_USERS = {
    "sluice.sasl.users": ["sluice.sasl.users=bob:b,alice:alice-secret"],
    "config of the mechanism": [f'{PREFIX}plain.sasl.jaas.config={MODULE} required user_alice="alice-secret";'],
    "config of the listener": [f'{PREFIX}sasl.jaas.config={MODULE} required user_alice="alice-secret";'],
    "config of all listeners": [
        f'sasl.jaas.config={SCRAM_MODULE} required; {MODULE} required user_alice="alice-secret";'
    ],
    "config of another mechanism is ignored": [
        f'sasl.jaas.config={MODULE} required user_alice="alice-secret";',
        f"{PREFIX}scram-sha-256.sasl.jaas.config={SCRAM_MODULE} required;",
    ],
    "first of two modules": [
        f'sasl.jaas.config={MODULE} required user_alice="alice-secret"; {MODULE} required user_alice="x";'
    ],
    "login module takes precedence over sluice.sasl.users": [
        "sluice.sasl.users=alice:x",
        f'sasl.jaas.config={MODULE} required user_alice="alice-secret";',
    ],
}


@pytest.mark.parametrize("overrides", PLAIN_USERS.values(), ids=PLAIN_USERS)
def test_plain_users_come_from_the_most_specific_config(overrides: list[str]) -> None:
    assert user_of(*overrides) == "alice"


def test_password_can_contain_a_comma() -> None:
    assert user_of("sluice.sasl.users=alice:a\\,b:c,bob:b", password="a,b:c") == "alice"


def test_default_mechanisms_exclude_oauthbearer() -> None:
    assert mechanisms() == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


RELEASE_MECHANISMS = [
    ("kafka-0.10.2", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]),
    ("kafka-4.4", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]),
]


@pytest.mark.parametrize(("release", "expected"), RELEASE_MECHANISMS)
def test_release_has_its_mechanisms(release: str, expected: list[str]) -> None:
    client = VirtualBroker(LISTENER, f"sluice.kafka.release={release}").client()
    assert handshake(client, "SCRAM-SHA-256", version=0).mechanisms == expected


INVALID_SETTINGS = {
    "Kerberos": (
        ["sasl.enabled.mechanisms=GSSAPI"],
        "--override: sasl.enabled.mechanisms: expected mechanisms "
        "(PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER), got GSSAPI",
    ),
    "no mechanism": (
        [f"{PREFIX}sasl.enabled.mechanisms="],
        "--override: listener.name.sasl_plaintext.sasl.enabled.mechanisms: "
        "no mechanism for listener SASL_PLAINTEXT; expected at least one of PLAIN, SCRAM-SHA-256, ",
    ),
    "mechanism newer than the release": (
        ["sasl.enabled.mechanisms=OAUTHBEARER", "sluice.kafka.release=kafka-1.1"],
        "--override: sasl.enabled.mechanisms: expected mechanisms of kafka-1.1 "
        "(PLAIN, SCRAM-SHA-256, SCRAM-SHA-512), got OAUTHBEARER",
    ),
    "release without SaslHandshake": (
        ["sluice.kafka.release=kafka-0.9"],
        "default: sasl.enabled.mechanisms: no mechanism for listener SASL_PLAINTEXT; "
        "expected a later sluice.kafka.release than kafka-0.9",
    ),
    "PLAIN without users": ([PLAIN_ONLY], 'default: sasl.jaas.config: PLAIN has no users; add user_NAME="PASSWORD" to'),
    "invalid login module": (
        [f"{PREFIX}plain.sasl.jaas.config={MODULE} required user_a='hunter2"],
        "--override: listener.name.sasl_plaintext.plain.sasl.jaas.config: line 1, column 73: expected a word",
    ),
    "login module of another mechanism": (
        [f"{PREFIX}plain.sasl.jaas.config={SCRAM_MODULE} required;"],
        f"--override: listener.name.sasl_plaintext.plain.sasl.jaas.config: expected one login module, {MODULE}",
    ),
    "two login modules for one mechanism": (
        [f"{PREFIX}plain.sasl.jaas.config={MODULE} required user_a=b; {MODULE} required;"],
        f"--override: listener.name.sasl_plaintext.plain.sasl.jaas.config: expected one login module, {MODULE}",
    ),
    "invalid option": (
        [
            "sasl.enabled.mechanisms=OAUTHBEARER",
            f'sasl.jaas.config={OAUTH_MODULE} required unsecuredValidatorAllowableClockSkewMs="x";',
        ],
        "--override: sasl.jaas.config: unsecuredValidatorAllowableClockSkewMs: expected milliseconds of at least 0",
    ),
}


@pytest.mark.parametrize(("overrides", "line"), INVALID_SETTINGS.values(), ids=INVALID_SETTINGS)
def test_invalid_setting_is_a_one_line_error(overrides: list[str], line: str) -> None:
    cluster = Cluster(Runtime(Config.load(None, [LISTENER, *overrides]), ManualClock(), Random(0)))
    with pytest.raises(ConfigError, match=f"^{re.escape(line)}") as raised:
        SaslListener(cluster.config.of_listener("SASL_PLAINTEXT"), cluster.runtime, lambda: cluster.scram_credentials)
    assert "\n" not in str(raised.value)
    assert "hunter2" not in str(raised.value)

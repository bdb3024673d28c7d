"""TLS and SASL with the Python clients: valid logins succeed; others give a client error and one log line."""

import gc
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.clients.clients import CLIENTS as MATRIX
from tests.clients.driver import Driver, Given
from tests.clients.login import Login
from tests.clients.secure_clients import CLIENTS, PATIENCE_S, RefusedError
from tests.support import skips
from tests.support.broker_process import BrokerProcess, overrides
from tests.support.certificates import certificates

FILES = certificates()
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "MUTUAL": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "PLAIN_ONLY": "SASL_PLAINTEXT",
}
PROPERTIES = (
    "listeners=" + ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
    "listener.security.protocol.map=" + ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
    f"ssl.keystore.location={FILES.broker}",
    f"ssl.truststore.location={FILES.ca}",
    "listener.name.mutual.ssl.client.auth=required",
    "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "listener.name.plain_only.sasl.enabled.mechanisms=PLAIN",
    "sluice.sasl.users=alice:alice-secret",
)
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class SecureBroker:
    """A broker with one listener of each kind, and the warnings it logged since the last call."""

    def __init__(self, process: BrokerProcess) -> None:
        self._process = process
        self._read = 0
        self.addresses: dict[str, list[str]] = process.ready["listeners"]

    def address(self, listener: str) -> str:
        return self.addresses[listener][0]

    def wait_for_warnings(self) -> list[str]:
        """Return the warnings logged since the last call; wait for at least one."""
        ends_s = monotonic() + PATIENCE_S
        while not (found := self.warnings()) and monotonic() < ends_s:
            self._process.get("/healthz")  # gives the broker an event-loop iteration or two
        self._process.get("/healthz")
        return found + self.warnings()

    def warnings(self) -> list[str]:
        """Return the warnings logged since the last call."""
        text = self._process.log_text()
        lines, self._read = text[self._read :].splitlines(), len(text)
        return [line for line in lines if " INFO " not in line]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    log = tmp_path_factory.mktemp("secure") / "log"
    process = BrokerProcess(log, "--admin-port", "0", *overrides(*PROPERTIES))
    try:
        yield SecureBroker(process)
    finally:
        process.stop()


@pytest.fixture(autouse=True)
def no_earlier_warnings(broker: SecureBroker) -> None:
    """Discard warnings of earlier tests."""
    broker.warnings()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("listener", "login"),
    [
        pytest.param("SSL", Login("SSL", FILES.ca), id="TLS"),
        pytest.param("MUTUAL", Login("SSL", FILES.ca, FILES.alice), id="TLS with a client's certificate"),
        *(
            pytest.param(protocol, Login(protocol, ca, mechanism=mechanism), id=f"{mechanism} over {protocol}")
            for (protocol, ca), mechanism in product([("SASL_PLAINTEXT", ""), ("SASL_SSL", str(FILES.ca))], MECHANISMS)
        ),
    ],
)
def test_valid_login_succeeds(broker: SecureBroker, client: str, listener: str, login: Login) -> None:
    CLIENTS[client](broker.address(listener), login)
    assert broker.warnings() == []


class Refusal(NamedTuple):
    """A login that fails: the broker's log line, and each client's error (type, and its text or log)."""

    listener: str
    login: Login
    line: str
    errors: dict[str, tuple[str, str]]
    attempts: int = 1  # at most


# If the response and the close arrive in one read, kafka-python may report only the close.
GONE = "socket disconnected"
NO_TRUST = "TLS failed .* listener=SSL reason=.*(does not trust|may not trust)"
REFUSED = {
    "a wrong password": Refusal(
        "SASL_PLAINTEXT",
        Login("SASL_PLAINTEXT", mechanism="PLAIN", password="wrong"),
        'authentication failed .* mechanism=PLAIN reason="Authentication failed: Invalid username or password"',
        {
            "aiokafka": ("KafkaConnectionError", "SaslAuthenticationFailed: Authentication failed: Invalid"),
            "kafka-python": ("KafkaTimeoutError", f"SaslAuthenticationFailedError: Auth|{GONE}"),
            "confluent-kafka": ("_AUTHENTICATION", "SASL authentication error: Authentication failed: Invalid"),
        },
    ),
    "a wrong password for SCRAM": Refusal(
        "SASL_SSL",
        Login("SASL_SSL", FILES.ca, mechanism="SCRAM-SHA-512", password="wrong"),
        'authentication failed .* mechanism=SCRAM-SHA-512 reason="Invalid client credentials"',
        {
            "aiokafka": ("KafkaConnectionError", "SaslAuthenticationFailed: .* due to invalid credentials"),
            "kafka-python": ("KafkaTimeoutError", f"SaslAuthenticationFailedError: Auth|{GONE}"),
            "confluent-kafka": ("_AUTHENTICATION", "due to invalid credentials with SASL mechanism SCRAM-SHA-512"),
        },
    ),
    "a mechanism that is not enabled": Refusal(
        "PLAIN_ONLY",
        Login("SASL_PLAINTEXT", mechanism="SCRAM-SHA-256"),
        "authentication failed .* mechanism=SCRAM-SHA-256 reason=.*not enabled; expected one of PLAIN",
        {
            "aiokafka": ("KafkaConnectionError", "UnsupportedSaslMechanism"),
            "kafka-python": ("KafkaTimeoutError", f"UnsupportedSaslMechanism|{GONE}"),
            "confluent-kafka": ("_AUTHENTICATION", "Unsupported SASL mechanism: broker's supported mechanisms: PLAIN"),
        },
    ),
    "a token that has expired": Refusal(
        "SASL_PLAINTEXT",
        Login("SASL_PLAINTEXT", mechanism="OAUTHBEARER", expires_in_s=-5),
        r"authentication failed .* mechanism=OAUTHBEARER reason=.*invalid_token: expired \(exp\)",
        {  # aiokafka ignores the error, assumes that it is authenticated, and retries forever
            "kafka-python": ("KafkaTimeoutError", f"invalid_token|{GONE}"),
            "confluent-kafka": ("_AUTHENTICATION", 'SASL authentication error: {"status":"invalid_token"}'),
        },
        attempts=2,  # librdkafka fetches another token and retries immediately
    ),
    "an unknown authority": Refusal(
        "SSL",
        Login("SSL", FILES.other_ca),
        NO_TRUST,
        {
            "aiokafka": ("KafkaConnectionError", "CERTIFICATE_VERIFY_FAILED"),
            "kafka-python": ("KafkaTimeoutError", "CERTIFICATE_VERIFY_FAILED"),
            "confluent-kafka": ("_SSL|_TRANSPORT", "certificate verify failed"),
        },
    ),
    "a certificate that has expired": Refusal(
        "MUTUAL",
        Login("SSL", FILES.ca, FILES.expired),
        "TLS failed .* listener=MUTUAL reason=.*certificate has expired",
        {
            "aiokafka": ("KafkaConnectionError", "Unable to bootstrap"),
            "kafka-python": ("KafkaTimeoutError", "CERTIFICATE_EXPIRED"),
            "confluent-kafka": ("_SSL|_TRANSPORT", "alert certificate expired"),
        },
    ),
    "plain text on a TLS port": Refusal(
        "SSL",
        Login("PLAINTEXT"),
        "TLS failed .* listener=SSL reason=.*plain text to a TLS port",
        {
            "aiokafka": ("KafkaConnectionError", "Unable to bootstrap"),
            "kafka-python": ("KafkaTimeoutError", "Unable to bootstrap"),
            "confluent-kafka": ("_ALL_BROKERS_DOWN|_TRANSPORT", "brokers are down|Disconnected|security.protocol"),
        },
    ),
    "TLS on a plain port": Refusal(
        "PLAINTEXT",
        Login("SSL", FILES.ca),
        "connection closed .*TLS on a listener without TLS",
        {
            "aiokafka": ("KafkaConnectionError", "Unable to bootstrap"),
            "kafka-python": ("KafkaTimeoutError", "Unable to bootstrap"),
            "confluent-kafka": ("_SSL|_TRANSPORT", "PLAINTEXT broker listener|connection closed by peer"),
        },
    ),
}


# aiokafka leaves the transport of a rejected connection to the garbage collector.
@pytest.mark.filterwarnings(r"ignore:Exception ignored .*Transport\.__del__ :pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("client", "refusal"),
    [
        pytest.param(client, refusal, id=f"{client}, {name}")
        for name, refusal in REFUSED.items()
        for client in refusal.errors
    ],
)
def test_invalid_login_fails_and_logs_one_line(
    broker: SecureBroker, client: str, refusal: Refusal, caplog: pytest.LogCaptureFixture
) -> None:
    kind, words = refusal.errors[client]
    with pytest.raises(RefusedError) as raised:
        CLIENTS[client](broker.address(refusal.listener), refusal.login)
    reported = str(raised.value)
    assert re.match(f"({kind}): ", reported)
    assert re.search(words, reported + caplog.text), "the client's error and log"
    lines = broker.wait_for_warnings()
    assert len({re.findall(r"peer=(\S+)", line)[0] for line in lines}) == len(lines), "one log line per connection"
    assert 1 <= len(lines) <= refusal.attempts
    assert all(re.search(refusal.line, line) for line in lines)
    assert not any("wrong" in line for line in lines), "a log line contains the password"
    del raised
    gc.collect()


PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(FILES.ca)}


def of_java(protocol: str, mechanism: str = "", jaas: str = "", **properties: str) -> dict[str, str]:
    """Return properties of a Java client; underscores stand for dots."""
    given = {"security.protocol": protocol} | {name.replace("_", "."): value for name, value in properties.items()}
    if mechanism:
        given |= {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    return TRUST | given if protocol.endswith("SSL") else given


JAVA = [client for client in MATRIX if client.name.startswith("java")]
ALICE = 'required username="alice" password="alice-secret";'
JAVA_CASES = {
    "TLS": ("SSL", of_java("SSL"), {"nodes": 1}, ""),
    "TLS with a client's certificate": (
        "MUTUAL",
        of_java("SSL", ssl_keystore_type="PEM", ssl_keystore_location=str(FILES.alice)),
        {"nodes": 1},
        "",
    ),
    "PLAIN": ("SASL_SSL", of_java("SASL_SSL", "PLAIN", f"{PLAIN_MODULE} {ALICE}"), {"nodes": 1}, ""),
    "SCRAM-SHA-256": (
        "SASL_PLAINTEXT",
        of_java("SASL_PLAINTEXT", "SCRAM-SHA-256", f"{SCRAM_MODULE} {ALICE}"),
        {"nodes": 1},
        "",
    ),
    "SCRAM-SHA-512": ("SASL_SSL", of_java("SASL_SSL", "SCRAM-SHA-512", f"{SCRAM_MODULE} {ALICE}"), {"nodes": 1}, ""),
    "OAUTHBEARER": (
        "SASL_PLAINTEXT",
        of_java("SASL_PLAINTEXT", "OAUTHBEARER", f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="carol";'),
        {"nodes": 1},
        "",
    ),
    "a wrong password": (
        "SASL_PLAINTEXT",
        of_java("SASL_PLAINTEXT", "PLAIN", f'{PLAIN_MODULE} required username="alice" password="wrong";'),
        {"refused": "SaslAuthenticationException", "words": "Authentication failed: Invalid username or password"},
        "authentication failed .* mechanism=PLAIN",
    ),
    "an unknown user": (
        "SASL_SSL",
        of_java("SASL_SSL", "SCRAM-SHA-256", f'{SCRAM_MODULE} required username="zoe" password="wrong";'),
        {
            "refused": "SaslAuthenticationException",
            "words": "Authentication failed during authentication due to invalid credentials with SASL mechanism "
            "SCRAM-SHA-256",
        },
        "authentication failed .* mechanism=SCRAM-SHA-256",
    ),
    "a mechanism that is not enabled": (
        "PLAIN_ONLY",
        of_java("SASL_PLAINTEXT", "SCRAM-SHA-256", f"{SCRAM_MODULE} {ALICE}"),
        {
            "refused": "UnsupportedSaslMechanismException",
            "words": "Client SASL mechanism 'SCRAM-SHA-256' not enabled in the server, enabled mechanisms are [PLAIN]",
        },
        "authentication failed .* mechanism=SCRAM-SHA-256",
    ),
    "an unknown authority": (
        "SSL",
        of_java("SSL") | {"ssl.truststore.location": str(FILES.other_ca)},
        {"refused": "SslAuthenticationException", "words": "SSL handshake failed"},
        NO_TRUST,
    ),
    "a certificate that has expired": (
        "MUTUAL",
        of_java("SSL", ssl_keystore_type="PEM", ssl_keystore_location=str(FILES.expired)),
        {"refused": "SslAuthenticationException", "words": "Failed to process post-handshake messages"},
        "TLS failed .* listener=MUTUAL reason=.*certificate has expired",
    ),
}


@pytest.mark.parametrize("client", JAVA, ids=lambda client: client.name)
@pytest.mark.parametrize(("listener", "properties", "step", "line"), JAVA_CASES.values(), ids=JAVA_CASES)
def test_java_client_gets_the_same_result_as_from_kafka(
    broker: SecureBroker, client: Driver, listener: str, properties: dict[str, str], step: dict[str, object], line: str
) -> None:
    if (reason := client.missing()) is not None:
        pytest.skip(skips.build(client.name, reason))
    found = client.run(broker.address(listener), "login", Given(properties=properties))
    assert found == [step]
    lines = broker.wait_for_warnings() if line else broker.warnings()
    assert len(lines) == bool(line), lines
    assert all(re.search(line, one) for one in lines), lines


def test_scram_user_can_log_in_until_it_is_deleted(broker: SecureBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address("PLAINTEXT")})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    carol = Login("SASL_PLAINTEXT", mechanism="SCRAM-SHA-256", user="carol", password="pencil")
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion("carol", info, b"pencil")])["carol"].result()
    descriptions = admin.describe_user_scram_credentials(["carol"])
    assert isinstance(descriptions, dict)
    described = descriptions["carol"].result()
    assert [(one.mechanism, one.iterations) for one in described.scram_credential_infos] == [
        (ScramMechanism.SCRAM_SHA_256, 8192)
    ]
    for log_in in CLIENTS.values():
        log_in(broker.address("SASL_PLAINTEXT"), carol)
    deletion = UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256)
    admin.alter_user_scram_credentials([deletion])["carol"].result()
    with pytest.raises(RefusedError, match="_AUTHENTICATION"):
        CLIENTS["confluent-kafka"](broker.address("SASL_PLAINTEXT"), carol)
    assert [line for line in broker.wait_for_warnings() if "Invalid user credentials" not in line] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_all_brokers_of_a_cluster_open_each_listener(client: str, tmp_path: Path) -> None:
    properties = [f"ssl.keystore.location={FILES.broker}", "sluice.sasl.users=alice:alice-secret", "num.partitions=3"]
    listeners = "listeners=PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0"
    arguments = ["--brokers", "3", "--admin-port", "0", *overrides(listeners, *properties)]
    process = BrokerProcess(tmp_path / "log", *arguments)
    try:
        login = Login("SASL_SSL", FILES.ca, mechanism="SCRAM-SHA-256")
        for address in process.ready["listeners"]["SASL_SSL"]:
            CLIENTS[client](address, login)
        assert len(process.ready["listeners"]["PLAINTEXT"]) == 3
    finally:
        process.stop()
    # A client may stop while it is still connecting to a broker that it does not need.
    assert "authentication failed" not in process.log_text()

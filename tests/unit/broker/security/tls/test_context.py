"""Kafka's ssl.* properties: TLS contexts, and errors for invalid settings."""

import re
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from sluice.broker.security.tls.context import server_context
from sluice.config.broker_config import Config
from sluice.errors import ConfigError
from tests.support.certificates import certificates

FILES = certificates()
PEM = FILES.broker.read_bytes()
START_OF_CHAIN = PEM.index(b"-----BEGIN CERTIFICATE")
CHAIN = PEM[START_OF_CHAIN:].decode()
PRIVATE_KEY = load_pem_private_key(PEM[:START_OF_CHAIN], None)
KEY = PRIVATE_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
ENCRYPTED = PRIVATE_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pass")).decode()


def context(*overrides: str, client_auth: str = "none") -> ssl.SSLContext:
    config = Config.load(None, ["listeners=SSL://:0", *overrides])
    return server_context(config.of_listener("SSL"), client_auth)


def stored(tmp_path: Path, content: str) -> str:
    path = tmp_path / "store.pem"
    path.write_text(content)
    return f"ssl.keystore.location={path}"


@pytest.mark.parametrize("one_line", [False, True], ids=["with line breaks", "on one line, as in Kafka"])
def test_key_and_chain_can_be_values(one_line: bool) -> None:
    key, chain = (text.replace("\n", " ") if one_line else text for text in (KEY, CHAIN))
    context(f"ssl.keystore.key={key}", f"ssl.keystore.certificate.chain={chain}")


def test_key_can_be_encrypted(tmp_path: Path) -> None:
    context(stored(tmp_path, CHAIN + ENCRYPTED), "ssl.key.password=pass")


def test_listener_setting_takes_precedence() -> None:
    context("ssl.keystore.location=/nowhere", f"listener.name.ssl.ssl.keystore.location={FILES.broker}")


@pytest.mark.parametrize(
    ("auth", "mode"), [("none", ssl.CERT_NONE), ("requested", ssl.CERT_OPTIONAL), ("required", ssl.CERT_REQUIRED)]
)
def test_client_auth_sets_the_verify_mode(auth: str, mode: ssl.VerifyMode) -> None:
    authorities = f"ssl.truststore.certificates={FILES.ca.read_text()}"
    assert context(*FILES.broker_overrides, authorities, client_auth=auth).verify_mode is mode


CIPHER_SUITES = {
    "Java names of TLS 1.2 suites disable TLS 1.3": (
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        ("TLSv1_2", "TLSv1_2"),
        {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    ),
    "OpenSSL name": ("AES256-SHA256", ("TLSv1_2", "TLSv1_2"), {"AES256-SHA256"}),
    "Java name with another OpenSSL name": (
        "TLS_RSA_WITH_AES_256_CBC_SHA256",
        ("TLSv1_2", "TLSv1_2"),
        {"AES256-SHA256"},
    ),
    "only TLS 1.3": ("TLS_AES_128_GCM_SHA256", ("TLSv1_3", "TLSv1_3"), set()),
    "both versions": ("TLS_AES_128_GCM_SHA256,AES256-SHA256", ("TLSv1_2", "TLSv1_3"), {"AES256-SHA256"}),
}


@pytest.mark.parametrize(("suites", "versions", "names"), CIPHER_SUITES.values(), ids=CIPHER_SUITES)
def test_cipher_suites_set_names_and_versions(suites: str, versions: tuple[str, str], names: set[str]) -> None:
    server = context(*FILES.broker_overrides, f"ssl.cipher.suites={suites}")
    assert (server.minimum_version.name, server.maximum_version.name) == versions
    older = {cipher["name"] for cipher in server.get_ciphers() if cipher["protocol"] != "TLSv1.3"}
    assert names <= older
    assert len(older) == len(names) or not names


INVALID_SETTINGS = {
    "no key": (
        lambda tmp: [],
        "default: ssl.keystore.location: missing; listener SSL requires it, or ssl.keystore.key and .certificate.chain",
    ),
    "no such file": (
        lambda tmp: [f"ssl.keystore.location={tmp}/none.pem"],
        "--override: ssl.keystore.location: {tmp}/none.pem cannot be read: No such file or directory",
    ),
    "no key in the file": (
        lambda tmp: [stored(tmp, CHAIN)],
        "--override: ssl.keystore.location: expected one private key (BEGIN PRIVATE KEY), got 0",
    ),
    "no certificate in the file": (
        lambda tmp: [stored(tmp, KEY)],
        "--override: ssl.keystore.location: contains no certificate (BEGIN CERTIFICATE)",
    ),
    "key of another certificate": (
        lambda tmp: [stored(tmp, KEY + FILES.ca.read_text())],
        "--override: ssl.keystore.location: the private key does not match the first certificate",
    ),
    "corrupt certificate": (
        lambda tmp: [stored(tmp, KEY + CHAIN.replace("M", "-", 1))],
        "--override: ssl.keystore.location: not valid PEM",
    ),
    "no password": (
        lambda tmp: [stored(tmp, ENCRYPTED + CHAIN)],
        "default: ssl.key.password: missing; required because the private key is encrypted",
    ),
    "wrong password": (
        lambda tmp: [stored(tmp, ENCRYPTED + CHAIN), "ssl.key.password=wrong"],
        "--override: ssl.key.password: does not decrypt the private key",
    ),
    "key store password": (
        lambda tmp: [stored(tmp, KEY + CHAIN), "ssl.keystore.password=x"],
        "--override: ssl.keystore.password: not supported for PEM; set ssl.key.password for an encrypted key",
    ),
    "two keys": (
        lambda tmp: [stored(tmp, KEY + CHAIN), f"ssl.keystore.key={KEY}"],
        "--override: ssl.keystore.location: conflicts with ssl.keystore.key and .certificate.chain",
    ),
    "key without a chain": (
        lambda tmp: [f"ssl.keystore.key={KEY}"],
        "default: ssl.keystore.certificate.chain: missing; required because ssl.keystore.key is set",
    ),
    "chain without a key": (
        lambda tmp: [f"ssl.keystore.certificate.chain={CHAIN}"],
        "default: ssl.keystore.key: missing; required because ssl.keystore.certificate.chain is set",
    ),
    "Java key store": (
        lambda tmp: ["ssl.keystore.type=JKS", "ssl.keystore.location=store.jks"],
        "--override: ssl.keystore.type: expected PEM, got JKS. `openssl pkcs12 -in STORE -noenc -out store.pem`",
    ),
    "PKCS12 trust store": (
        lambda tmp: [stored(tmp, KEY + CHAIN), "ssl.truststore.type=PKCS12"],
        "--override: ssl.truststore.type: expected PEM, got PKCS12. `openssl pkcs12",
    ),
    "binary file": (
        lambda tmp: [stored(tmp, "\N{LATIN SMALL LETTER E WITH ACUTE}")],
        "--override: ssl.keystore.location: {tmp}/store.pem is not PEM. `openssl pkcs12",
    ),
    "trust store without certificates": (
        lambda tmp: [stored(tmp, KEY + CHAIN), "ssl.truststore.certificates=x"],
        "--override: ssl.truststore.certificates: contains no certificate (BEGIN CERTIFICATE)",
    ),
    "corrupt trust store": (
        lambda tmp: [stored(tmp, KEY + CHAIN), f"ssl.truststore.certificates={CHAIN.replace('M', '-', 1)}"],
        "--override: ssl.truststore.certificates: not valid PEM: a certificate is damaged",
    ),
    "two trust stores": (
        lambda tmp: [f"ssl.truststore.location={FILES.ca}", "ssl.truststore.certificates=x", stored(tmp, KEY + CHAIN)],
        "--override: ssl.truststore.location: conflicts with ssl.truststore.certificates",
    ),
    "unknown suite": (
        lambda tmp: [stored(tmp, KEY + CHAIN), "ssl.cipher.suites=TLS_NO_WITH_SUCH"],
        "--override: ssl.cipher.suites: OpenSSL knows none of TLS_NO_WITH_SUCH",
    ),
    "suite of a disabled version": (
        lambda tmp: ["ssl.cipher.suites=AES256-SHA256", "ssl.enabled.protocols=TLSv1.3"],
        "--override: ssl.cipher.suites: no suite is of a version in ssl.enabled.protocols",
    ),
    "listener setting with its full name": (
        lambda tmp: ["listener.name.ssl.ssl.keystore.location=/none"],
        "--override: listener.name.ssl.ssl.keystore.location: /none cannot be read",
    ),
}


@pytest.mark.parametrize(("overrides", "line"), INVALID_SETTINGS.values(), ids=INVALID_SETTINGS)
def test_invalid_setting_is_a_one_line_error(overrides: Callable[[Path], list[str]], line: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape(line.format(tmp=tmp_path))) as raised:
        context(*overrides(tmp_path))
    assert "\n" not in str(raised.value)


def test_client_certificates_require_a_trust_store() -> None:
    with pytest.raises(
        ConfigError, match=r"ssl\.truststore\.location: missing; required because client certificates are"
    ):
        context(*FILES.broker_overrides, client_auth="required")

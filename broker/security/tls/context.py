"""The `ssl.*` properties of a listener, as a context of the ssl module.

Follows DefaultSslEngineFactory, with PEM (KIP-651) as the only format: a file with key and chain, or both as values.
Different on purpose: an unusable configuration (no key, a key of another certificate, client authentication without a
truststore) is an error at start-up. Kafka fails at the first handshake, or uses the JVM's truststore.
"""

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from sluice.config.listener_config import ListenerConfig
from sluice.text.error_text import expected

_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_PEM = "PEM"
_CONVERT = (
    "`openssl pkcs12 -in STORE -noenc -out store.pem` converts a PKCS12 store, `keytool -importkeystore -srckeystore "
    " STORE -destkeystore store.p12 -deststoretype PKCS12` converts a JKS store to PKCS12"
)
_KEY = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----")
_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
# OpenSSL configures the suites of TLS 1.3 separately; their names contain no key exchange.
_OF_TLS_1_3 = re.compile(r"TLS_(AES|CHACHA20)_.*")


def server_context(config: ListenerConfig, client_auth: str) -> ssl.SSLContext:
    """Return the TLS context of a listener. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _limit_versions(context, config)
    _limit_ciphers(context, config)
    _load_key(context, config)
    _load_trusted(context, config, client_auth)
    return context


def _limit_versions(context: ssl.SSLContext, config: ListenerConfig) -> None:
    versions = [_VERSIONS[name] for name in config.names("ssl.enabled.protocols")]
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _limit_ciphers(context: ssl.SSLContext, config: ListenerConfig) -> None:
    suites = config.names("ssl.cipher.suites")
    if not suites:
        return
    older = [suite for suite in suites if not _OF_TLS_1_3.fullmatch(suite)]
    if older:
        try:
            context.set_ciphers(":".join(map(_openssl_name, older)))
        except ssl.SSLError:
            raise config.wrong("ssl.cipher.suites", f"OpenSSL knows none of {', '.join(older)}") from None
        if len(older) == len(suites):
            context.maximum_version = ssl.TLSVersion.TLSv1_2
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if context.minimum_version > context.maximum_version:
        raise config.wrong("ssl.cipher.suites", "no suite is of a version in ssl.enabled.protocols")


def _openssl_name(suite: str) -> str:
    """Return OpenSSL's name: `ECDHE-RSA-AES128-GCM-SHA256` for `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`."""
    name = suite.removeprefix("TLS_").replace("_WITH_", "-").removeprefix("RSA-")
    name = re.sub(r"(AES)_(\d+)", r"\1\2", name).replace("_CBC_", "_").replace("POLY1305_SHA256", "POLY1305")
    return name.replace("_", "-")


def _load_key(context: ssl.SSLContext, config: ListenerConfig) -> None:
    _check_type(config, "keystore")
    location, key = config.text("ssl.keystore.location"), config.text("ssl.keystore.key")
    chain = config.text("ssl.keystore.certificate.chain")
    if key is None and chain is None:
        if location is None:
            problem = f"missing; listener {config.listener} requires it, or ssl.keystore.key and .certificate.chain"
            raise config.wrong("ssl.keystore.location", problem)
        store = _read(config, "ssl.keystore.location", location)
        _load_chain(context, config, "ssl.keystore.location", store)
    elif location is not None:
        raise config.wrong("ssl.keystore.location", "conflicts with ssl.keystore.key and .certificate.chain")
    elif key is None or chain is None:
        names = ("ssl.keystore.key", "ssl.keystore.certificate.chain")
        missing, present = names if key is None else names[::-1]
        raise config.wrong(missing, f"missing; required because {present} is set")
    else:
        _load_chain(context, config, "ssl.keystore.key", f"{_lines(key)}\n{_lines(chain)}\n")


def _load_chain(context: ssl.SSLContext, config: ListenerConfig, name: str, pem: str) -> None:
    password = config.text("ssl.key.password")
    keys = _KEY.findall(pem)
    if len(keys) != 1:
        raise config.wrong(name, f"expected one private key (BEGIN PRIVATE KEY), got {len(keys)}")
    if _CERTIFICATE not in pem:
        raise config.wrong(name, "contains no certificate (BEGIN CERTIFICATE)")
    encrypted = "ENCRYPTED" in keys[0] or "Proc-Type: 4,ENCRYPTED" in pem
    if encrypted and password is None:
        raise config.wrong("ssl.key.password", "missing; required because the private key is encrypted")
    try:
        with _file(pem) as path:
            context.load_cert_chain(path, password=password or "")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise config.wrong(name, "the private key does not match the first certificate") from None
        if encrypted:
            raise config.wrong("ssl.key.password", "does not decrypt the private key") from None
        raise config.wrong(name, f"not valid PEM: {error.reason or 'key or certificate is damaged'}") from None


def _load_trusted(context: ssl.SSLContext, config: ListenerConfig, client_auth: str) -> None:
    _check_type(config, "truststore")
    location, inline = config.text("ssl.truststore.location"), config.text("ssl.truststore.certificates")
    if location is not None and inline is not None:
        raise config.wrong("ssl.truststore.location", "conflicts with ssl.truststore.certificates")
    name = "ssl.truststore.location" if inline is None else "ssl.truststore.certificates"
    if location is None and inline is None:
        if client_auth != "none":
            problem = f"missing; required because client certificates are {client_auth} (ssl.client.auth)"
            raise config.wrong(name, problem)
        return
    pem = _read(config, name, location) if location is not None else _lines(inline or "")
    if _CERTIFICATE not in pem:
        raise config.wrong(name, "contains no certificate (BEGIN CERTIFICATE)")
    try:
        context.load_verify_locations(cadata=pem[pem.index(_CERTIFICATE) :])
    except (ssl.SSLError, ValueError):
        raise config.wrong(name, "not valid PEM: a certificate is damaged") from None
    # As in Java, every certificate in the store is trusted.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_mode = _CLIENT_AUTH[client_auth]


def _check_type(config: ListenerConfig, store: str) -> None:
    name = f"ssl.{store}.type"
    type_ = config.text(name)
    if type_ != _PEM:
        raise config.wrong(name, f"{expected(_PEM, type_)}. {_CONVERT}")
    if config.text(f"ssl.{store}.password") is not None:
        instead = "; set ssl.key.password for an encrypted key" if store == "keystore" else ""
        raise config.wrong(f"ssl.{store}.password", f"not supported for PEM{instead}")


def _read(config: ListenerConfig, name: str, location: str) -> str:
    try:
        return Path(location).read_text(encoding="ascii")
    except OSError as error:
        raise config.wrong(name, f"{location} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise config.wrong(name, f"{location} is not PEM. {_CONVERT}") from None


def _lines(pem: str) -> str:
    # As in Kafka, a one-line property may have blanks in place of line breaks, which OpenSSL rejects.
    if "\n" in pem:
        return pem
    found: list[str] = []
    for begin, label, body in re.findall(r"(-----BEGIN ([A-Z ]+)-----)([^-]*)-----END \2-----", pem):
        found += [begin, *body.split(), f"-----END {label}-----"]
    return "\n".join(found) + "\n"


@contextmanager
def _file(pem: str) -> Iterator[str]:
    # The ssl module loads keys only from files.
    with NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        yield file.name

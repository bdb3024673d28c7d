"""The TLS context of a client, from Kafka's `ssl.*` properties and PEM files."""

import ssl
from collections.abc import Callable

from sluice.client.config import ClientConfig


def tls_context(config: ClientConfig) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(config.text("ssl.endpoint.identification.algorithm"))
    trusted, certificates = (config.text_or_none(f"ssl.truststore.{name}") for name in ("location", "certificates"))
    _use(config, "ssl.truststore.location", lambda: _trust(context, trusted, certificates))
    keystore = config.text_or_none("ssl.keystore.location")
    if keystore is not None:
        password = config.text_or_none("ssl.key.password")
        _use(config, "ssl.keystore.location", lambda: context.load_cert_chain(keystore, password=password))
    return context


def _trust(context: ssl.SSLContext, location: str | None, certificates: str | None) -> None:
    if location is None and certificates is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cafile=location, cadata=certificates)


def _use(config: ClientConfig, name: str, load: Callable[[], None]) -> None:
    try:
        load()
    except OSError as error:  # includes ssl.SSLError
        raise config.error(f"{name}={config.text_or_none(name)}: {error.strerror or error}") from None

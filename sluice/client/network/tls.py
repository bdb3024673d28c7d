"""The TLS context of a client, from Kafka's `ssl.*` properties and PEM files."""

import ssl
from collections.abc import Callable

from sluice.client.config import ClientConfig
from sluice.client.errors import SslAuthenticationException

# The hint of an error that a wrong security protocol may have caused.
CHECK_PROTOCOL = "check security.protocol"

_ALERT = "_ALERT_"
_NO_TLS = frozenset({"HTTP_REQUEST", "UNEXPECTED_MESSAGE", "WRONG_VERSION_NUMBER"})


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


def connection_error(error: Exception | None) -> Exception | None:
    """Return the error of a connection that was made, with the system's text.

    In TLS 1.3 a broker refuses a client's certificate after the client has completed the handshake.
    """
    if isinstance(error, ssl.SSLError) and _ALERT in (error.reason or ""):
        return handshake_error(error)
    return OSError(error.strerror) if isinstance(error, OSError) and error.strerror else error


def handshake_error(error: ssl.SSLError) -> SslAuthenticationException:
    reason = error.reason or ""
    _, alert, what = reason.partition(_ALERT)
    if isinstance(error, ssl.SSLCertVerificationError):
        return SslAuthenticationException(f"certificate verify failed: {error.verify_message}")
    if alert:
        hint = "; check ssl.keystore.location" if "CERTIFICATE" in what or what == "UNKNOWN_CA" else ""
        text = what.lower().replace("_", " ")
        return SslAuthenticationException(f"the broker refused the TLS handshake ({text}){hint}")
    if reason in _NO_TLS:
        return SslAuthenticationException(f"the broker does not respond with TLS; {CHECK_PROTOCOL}")
    return SslAuthenticationException(str(error))


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

"""Explanations of OpenSSL's handshake errors for the log."""

import ssl

_NO_TRUST = "the client does not trust the broker's certificate"
_NO_CERTIFICATE = "the client sent no certificate (ssl.client.auth=required)"
_REASONS = {
    "NO_SHARED_CIPHER": "no cipher suite in common (ssl.cipher.suites)",
    "NO_SUITABLE_SIGNATURE_ALGORITHM": "no signature algorithm in common with the broker's certificate",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": _NO_CERTIFICATE,
    "SSLV3_ALERT_BAD_CERTIFICATE": _NO_TRUST,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": _NO_TRUST,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _NO_TRUST,
    "TLSV1_ALERT_UNKNOWN_CA": _NO_TRUST,
    "UNSUPPORTED_PROTOCOL": "the client's TLS version is not enabled (ssl.enabled.protocols)",
    "VERSION_TOO_LOW": "the client's TLS version is not enabled (ssl.enabled.protocols)",
}


def failure_of(error: ssl.SSLError, *, is_tls: bool) -> str:
    """Return the reason; `is_tls`: whether the client's first bytes were TLS."""
    if not is_tls:
        return "the client does not speak TLS; does it send plain text to a TLS port?"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate was rejected: {error.verify_message}"
    reason = error.reason or "unknown"
    words = _REASONS.get(reason)
    return f"{words}: {reason}" if words else reason

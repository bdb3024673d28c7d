"""Why a TLS handshake failed, in words for the log: what OpenSSL says, and what that means here."""

import ssl

_NO_TRUST = "the client does not trust the broker's certificate"
_NO_CERTIFICATE = "the client shows no certificate (ssl.client.auth=required)"
_REASONS = {
    "NO_SHARED_CIPHER": "no cipher suite in common (ssl.cipher.suites)",
    "NO_SUITABLE_SIGNATURE_ALGORITHM": "no signature algorithm in common with the broker's certificate",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": _NO_CERTIFICATE,
    "SSLV3_ALERT_BAD_CERTIFICATE": _NO_TRUST,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": _NO_TRUST,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _NO_TRUST,
    "TLSV1_ALERT_UNKNOWN_CA": _NO_TRUST,
    "UNSUPPORTED_PROTOCOL": "the client's version of TLS is not accepted (ssl.enabled.protocols)",
    "VERSION_TOO_LOW": "the client's version of TLS is not accepted (ssl.enabled.protocols)",
}


def failure_of(error: ssl.SSLError, *, is_tls: bool) -> str:
    """One phrase; `is_tls`: whether what the client sent began as TLS does."""
    if not is_tls:
        return "what the client sends is not TLS: plain text on a TLS port?"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message}"
    reason = error.reason or "unknown"
    words = _REASONS.get(reason)
    return f"{words}: {reason}" if words else reason

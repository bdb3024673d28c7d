"""The base class of SASL mechanisms (javax.security.sasl.SaslServer) and their errors."""


class Mechanism:
    """One exchange with a client, from its first token to its last."""

    user: str | None = None  # the authenticated user, at the end of the exchange
    expires_at_ms: int | None = None  # expiration of the credential, wall clock; None: never
    objection = ""  # the problem for the log, if the client must acknowledge it before authentication fails

    def evaluate(self, token: bytes) -> bytes:
        """Return the response to a client token. Raises SaslError."""
        raise NotImplementedError


class SaslError(Exception):
    """A failed authentication whose cause is not disclosed to the client (SaslException).

    `reason` is for the log, without secrets.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SaslAuthenticationError(SaslError):
    """A failed authentication with a message for the client (SaslAuthenticationException)."""

    def __init__(self, client_message: str, reason: str = "") -> None:
        super().__init__(reason or client_message)
        self.client_message = client_message

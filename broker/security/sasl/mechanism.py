"""The interface of SASL mechanisms (javax.security.sasl.SaslServer) and their errors."""

from typing import Protocol


class Mechanism(Protocol):
    """One exchange with a client, from its first token to its last."""

    @property
    def user(self) -> str | None:
        """The authenticated user; None before the end of the exchange."""

    @property
    def expires_at_ms(self) -> int | None:
        """Expiration of the credential, wall clock in ms; None: never."""

    @property
    def objection(self) -> str:
        """The problem for the log, if the client must acknowledge it before authentication fails."""

    def evaluate(self, token: bytes) -> bytes:
        """Return the response to a client token. Raises SaslError."""


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

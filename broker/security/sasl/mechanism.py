"""What a SASL mechanism is to those who use it (javax.security.sasl.SaslServer), and how one refuses."""

from typing import Protocol


class Mechanism(Protocol):
    """One client's exchange, from its first token to its last."""

    @property
    def user(self) -> str | None:
        """Who the client is; None: that is not known yet."""

    @property
    def expires_at_ms(self) -> int | None:
        """When what the client has shown is worth nothing any more, by the wall clock; None: never."""

    @property
    def objection(self) -> str:
        """What the client was told is wrong, for the log; it has to say that it has seen it before it is refused."""

    def evaluate(self, token: bytes) -> bytes:
        """Takes what the client says; returns what it is told. Raises SaslError."""


class SaslError(Exception):
    """The client is refused, and not told why (SaslException). `reason` is for the log, and holds no secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SaslAuthenticationError(SaslError):
    """The client is refused, and told why in these words (SaslAuthenticationException)."""

    def __init__(self, told: str, reason: str = "") -> None:
        """`reason`: other words for the log."""
        super().__init__(reason or told)
        self.told = told

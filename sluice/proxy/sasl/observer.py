"""The users of clients whose SASL authentication passes through the proxy, for quotas and the journal.

A user is read from the client's first token (PLAIN, SCRAM, OAUTHBEARER) and counts when the broker's token shows that
it accepts the client. Nothing else of a token is kept, and no token is logged. Other mechanisms, delegation tokens and
opaque bearer tokens do not name the user; the first client of each mechanism without a user is logged.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from sluice.broker.security.sasl.mechanism import SaslError
from sluice.broker.security.sasl.oauthbearer import read_first as read_bearer
from sluice.broker.security.sasl.plain import tokens_of
from sluice.broker.security.sasl.scram import read_first as read_scram
from sluice.broker.security.sasl.unsecured_jws import IllegalTokenError, claims_of, principal_of
from sluice.protocol.codec.wire import LONGEST_STRING

log = logging.getLogger("sluice.proxy")

_PLAIN_TOKENS = 3
_DELEGATED = ",tokenauth=true"  # the name is the id of a token (KIP-48)


class SaslObserver:
    """The SASL exchanges of one connection: the first one, and re-authentications (KIP-368).

    Args:
        principal_claim: The claim of a bearer token with the user (`sasl.oauthbearer.sub.claim.name`).
        reported: The mechanisms whose clients without a user were logged; shared by all connections.
    """

    def __init__(self, principal_claim: str, reported: set[str]) -> None:
        self._principal_claim = principal_claim
        self._reported = reported
        self._name = ""
        self._mechanism: _Mechanism | None = None  # of the exchange in progress
        self._named: str | None = None
        self._is_first = True
        self._rounds = 0

    @property
    def is_readable(self) -> bool:
        return self._name in _MECHANISMS

    @property
    def is_complete(self) -> bool:
        """Whether the exchange has ended, by a mechanism that the proxy can read."""
        return self.is_readable and self._mechanism is None

    def handshake(self, mechanism: str) -> None:
        """Begin an exchange by a mechanism that the broker has accepted."""
        self._name, self._mechanism = mechanism, _MECHANISMS.get(mechanism)
        self._named, self._is_first, self._rounds = None, True, 0
        if self._mechanism is None:
            self._report_once("the proxy cannot read this mechanism")

    def client_token(self, token: bytes) -> None:
        if self._mechanism is not None and self._is_first:
            self._is_first = False
            self._named = _valid(self._mechanism.user_in(token, self._principal_claim))

    def broker_token(self, token: bytes) -> str | None:
        """Return the user if the broker's token, in a response without error, completes the exchange."""
        mechanism = self._mechanism
        if mechanism is None or self._is_first:
            return None
        self._rounds += 1
        if self._rounds < mechanism.rounds:
            return None
        self._mechanism = None
        if not mechanism.is_success(token):
            return None
        if self._named is None:
            self._report_once("its token does not name the user")
        return self._named

    def _report_once(self, reason: str) -> None:
        if self._name not in self._reported:
            self._reported.add(self._name)
            log.warning(
                "a client's user is unknown; its quotas and journal are those of User:ANONYMOUS",
                extra={"mechanism": self._name, "reason": reason},
            )


class _Mechanism(NamedTuple):
    user_in: Callable[[bytes, str], str | None]  # from the first token of a client and the principal's claim
    rounds: int
    is_success: Callable[[bytes], bool]  # for the broker's last token


def _valid(user: str | None) -> str | None:
    return user if user and len(user.encode()) <= LONGEST_STRING else None


def _plain(token: bytes, _: str) -> str | None:
    tokens = tokens_of(token)
    return tokens[1] if len(tokens) == _PLAIN_TOKENS else None


def _scram(token: bytes, _: str) -> str | None:
    try:
        first = read_scram(token)
    except SaslError:
        return None
    return None if _DELEGATED in first.extensions.lower() else first.user


def _bearer(token: bytes, principal_claim: str) -> str | None:
    try:
        _, compact = read_bearer(token)
        return principal_of(claims_of(compact).get(principal_claim), principal_claim).strip()
    except (SaslError, IllegalTokenError):
        return None


_SCRAM = _Mechanism(_scram, 2, lambda token: token.startswith(b"v="))
_MECHANISMS = {
    "PLAIN": _Mechanism(_plain, 1, lambda token: True),
    "SCRAM-SHA-256": _SCRAM,
    "SCRAM-SHA-512": _SCRAM,
    "OAUTHBEARER": _Mechanism(_bearer, 1, lambda token: not token),  # else the reason of the refusal
}

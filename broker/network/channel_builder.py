"""The security layers of a listener: TLS, SASL, or both. Follows SslChannelBuilder and SaslChannelBuilder."""

import logging
import ssl
from collections.abc import Callable

from sluice.broker.broker import Broker
from sluice.broker.exchange.exchange import Exchange
from sluice.broker.security.sasl.listener import SaslListener
from sluice.broker.security.tls.context import server_context
from sluice.broker.security.tls.distinguished_name import subject
from sluice.broker.security.tls.principal_mapper import Rule, name_of, parse_rules
from sluice.errors import ConfigError

from .authenticator import AuthenticationCounts, SaslAuthenticator
from .connection import Connection
from .tls_transport import TlsAcceptor, TlsTransport

log = logging.getLogger("sluice.broker")

_CLIENT_AUTH = "ssl.client.auth"
_RULES = "ssl.principal.mapping.rules"


class ChannelBuilder:
    def __init__(
        self, broker: Broker, exchange: Exchange, listener: str, call_soon: Callable[[Callable[[], None]], object]
    ) -> None:
        """Create the TLS context and SASL mechanisms. Raises ConfigError. `call_soon` is that of the event loop."""
        self.name = listener
        self.authentications = AuthenticationCounts()
        self._broker = broker
        self._exchange = exchange
        self._config = broker.config.of_listener(listener)
        protocol = broker.config.security_protocol(listener)
        self._sasl: SaslListener | None = None
        if protocol.startswith("SASL_"):
            cluster = broker.cluster
            self._sasl = SaslListener(self._config, cluster.runtime, lambda: cluster.scram_credentials)
        self._rules: list[Rule] = []
        self._tls = self._tls_acceptor(call_soon) if protocol.endswith("SSL") else None
        if self._tls is not None:
            broker.on_configured.append(self._reload)

    def accept(self, connect: Callable[[], Connection]) -> Connection | TlsTransport:
        """Return a new client's protocol; `connect` creates its Connection."""
        if self._tls is None:
            return self._admit(connect)
        return TlsTransport(self._tls, connect)

    def close(self) -> None:
        if self._tls is not None:
            self._tls.close()

    def _admit(self, connect: Callable[[], Connection]) -> Connection:
        connection = connect()
        if self._sasl is not None:
            broker = self._broker
            SaslAuthenticator(
                broker.config, broker.scheduler, self._exchange, self._sasl, connection, self.authentications
            ).begin()
        return connection

    # -- TLS -----------------------------------------------------------------------------------------------------------

    def _tls_acceptor(self, call_soon: Callable[[Callable[[], None]], object]) -> TlsAcceptor:
        context = self._context()
        try:
            self._rules = parse_rules(self._config.text(_RULES) or "")
        except ValueError as error:
            raise self._config.wrong(_RULES, str(error)) from None
        return TlsAcceptor(context, self._broker.scheduler, call_soon, self._on_handshake, self._on_failed_handshake)

    def _context(self) -> ssl.SSLContext:
        # As in Kafka, SASL_SSL ignores the broker-wide ssl.client.auth: SASL authenticates the client.
        own = self._sasl is None or self._config.has_own(_CLIENT_AUTH)
        client_auth = self._config.text(_CLIENT_AUTH) if own else None
        return server_context(self._config, client_auth or "none")

    def _reload(self) -> None:
        """Read key and trusted certificates again, for new connections (KIP-226)."""
        assert self._tls is not None
        self._config = self._broker.config.of_listener(self.name)
        try:
            self._tls.context = self._context()
        except ConfigError as error:  # a file was changed since it was validated
            log.warning("TLS not reconfigured", extra={"listener": self.name, "reason": str(error)})

    def _on_handshake(self, layer: TlsTransport) -> Connection | None:
        """Return None if no mapping rule matches the client's certificate."""
        user = None
        if self._sasl is None and (certificate := layer.certificate) is not None:
            named = subject(certificate)
            user = name_of(self._rules, named)
            if user is None:
                self._on_failed_handshake(layer.peer, f"no rule of {_RULES} matches {named}")
                return None
        connection = self._admit(layer.connect)
        if self._sasl is None:
            self.authentications.successful += 1
            self.authentications.successful_no_reauth += 1
            if user is not None:
                connection.ctx.session.set_user(user)
        return connection

    def _on_failed_handshake(self, peer: str, reason: str) -> None:
        self.authentications.failed += 1
        log.warning("TLS failed", extra={"peer": peer, "listener": self.name, "reason": reason})

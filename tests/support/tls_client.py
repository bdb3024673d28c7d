"""A TLS client in virtual time."""

import ssl
from contextlib import suppress

from tests.support.virtual_broker import Client, VirtualBroker


class TlsClient(Client):
    """One encrypted connection to the broker's first listener."""

    def __init__(self, broker: VirtualBroker, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self._is_open = False
        self.tls_ended = False  # the broker sent close_notify
        self.alert = ""  # alert that rejects a client after its own handshake (TLS 1.3)
        super().__init__(broker, "client", 50_000, broker.server)
        self.on_bytes = self._decrypt

    def shake_hands(self) -> None:
        """Run the handshake. Raise the errors of the ssl module."""
        while not self._is_open:
            try:
                self.tls.do_handshake()
                self._is_open = True
            except ssl.SSLWantReadError:
                pass
            finally:
                self._send_outgoing()

    def send_bytes(self, data: bytes) -> None:
        if data:
            self.tls.write(data)
        self._send_outgoing()

    def say_goodbye(self) -> None:
        """Send close_notify."""
        with suppress(ssl.SSLError):  # the broker has not sent its close_notify
            self.tls.unwrap()
        self._send_outgoing()

    def take_outgoing(self) -> bytes:
        """Return and remove the outgoing bytes."""
        return self._outgoing.read()

    def send_plain(self, data: bytes) -> None:
        """Send unencrypted bytes."""
        super().send_bytes(data)

    def _send_outgoing(self) -> None:
        super().send_bytes(self._outgoing.read())

    def _decrypt(self, data: bytes) -> None:
        self._incoming.write(data)
        if not self._is_open:
            return
        try:
            while piece := self.tls.read(64 * 1024):
                self.take(piece)
            self.tls_ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.tls_ended = True
        except ssl.SSLError as error:
            self.alert = error.reason or ""

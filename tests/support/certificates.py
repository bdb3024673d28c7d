"""PEM files for tests: an authority, a broker certificate, and valid and invalid client certificates."""

import ssl
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

_directory = TemporaryDirectory(prefix="sluice-certificates-")
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


class Certificates:
    """Paths of the files: `ca` and `other_ca` hold certificates, the others a private key and its chain."""

    def __init__(self, directory: Path) -> None:
        authority, other = trustme.CA(), trustme.CA()
        self.ca = directory / "ca.pem"
        self.other_ca = directory / "other-ca.pem"
        authority.cert_pem.write_to_path(self.ca)
        other.cert_pem.write_to_path(self.other_ca)
        self.broker = self._issued(
            directory / "broker.pem", authority.issue_cert("127.0.0.1", "127.0.0.2", "127.0.0.3", "localhost")
        )
        alice = authority.issue_cert("alice@example.org", common_name="alice", organization_name="Org, Inc")
        self.alice = self._issued(directory / "alice.pem", alice)
        expired = authority.issue_cert("old@example.org", common_name="old", not_after=LONG_AGO)
        self.expired = self._issued(directory / "expired.pem", expired)
        self.stranger = self._issued(directory / "stranger.pem", other.issue_cert("s@example.org", common_name="s"))

    def _issued(self, path: Path, certificate: trustme.LeafCert) -> Path:
        # PKCS#8, the format that Java reads.
        key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
        chain = [blob.bytes() for blob in certificate.cert_chain_pems]
        path.write_bytes(b"".join([key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), *chain]))
        return path

    @property
    def broker_overrides(self) -> list[str]:
        """Return the properties of a TLS listener."""
        return [f"ssl.keystore.location={self.broker}"]

    def client_context(self, certificate: Path | None = None) -> ssl.SSLContext:
        """Return the context of a client that trusts the authority, with an optional certificate."""
        context = ssl.create_default_context(cafile=self.ca)
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context


@cache
def certificates() -> Certificates:
    """Return the certificates, created once per process."""
    return Certificates(Path(_directory.name))

"""The identity of a client."""

import msgspec


class ClientKey(msgspec.Struct, frozen=True, order=True, gc=False):
    client_id: str
    software_name: str
    software_version: str

    def __str__(self) -> str:
        software = " ".join(each for each in (self.software_name, self.software_version) if each)
        return f"{self.client_id or '(no client id)'}{software and f' ({software})'}"


def host_of(peer: str) -> str:
    """Return the address of a peer without its port."""
    return peer.rpartition(":")[0]

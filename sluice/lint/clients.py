"""The identity of a client."""

from typing import NamedTuple


class ClientKey(NamedTuple):
    client_id: str
    software_name: str
    software_version: str

    def __str__(self) -> str:
        software = " ".join(each for each in self[1:] if each)
        return f"{self.client_id or '(no client id)'}{software and f' ({software})'}"

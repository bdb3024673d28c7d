"""The SCRAM credentials of the cluster's users (KIP-84, KIP-554): salted hashes, never passwords.

Follows ScramMechanism, ScramFormatter and ScramCredential. As in Kafka, passwords are not normalized by SASLprep.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from hashlib import new as hash_of
from hashlib import pbkdf2_hmac
from hmac import digest as hmac
from typing import NamedTuple

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
_SALT_BYTES = 16


class ScramMechanism(Enum):
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        return self.name.removeprefix("SCRAM_").replace("_", "").lower()


class ScramCredential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


def credential(mechanism: ScramMechanism, salt: bytes, salted_password: bytes, iterations: int) -> ScramCredential:
    name = mechanism.hash_name
    stored_key = hash_of(name, hmac(salted_password, b"Client Key", name)).digest()
    return ScramCredential(salt, stored_key, hmac(salted_password, b"Server Key", name), iterations)


def credential_of(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> ScramCredential:
    salted_password = pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)
    return credential(mechanism, salt, salted_password, iterations)


class ScramCredentials:
    def __init__(self, passwords: dict[str, str], random_bytes: Callable[[int], bytes]) -> None:
        """Create credentials for both mechanisms, with salts from the broker's seeded `random_bytes`."""
        self._of_user: dict[str, dict[ScramMechanism, ScramCredential]] = {}
        for user, password in passwords.items():
            for mechanism in ScramMechanism:
                salt = random_bytes(_SALT_BYTES)
                self.put(user, mechanism, credential_of(mechanism, password, salt, MIN_ITERATIONS))

    def get(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self._of_user.get(user, {}).get(mechanism)

    def of_user(self, user: str) -> list[tuple[ScramMechanism, ScramCredential]]:
        return list(self._of_user.get(user, {}).items())

    def users(self) -> Iterator[str]:
        return iter(self._of_user)

    def put(self, user: str, mechanism: ScramMechanism, new: ScramCredential) -> None:
        self._of_user.setdefault(user, {})[mechanism] = new

    def remove(self, user: str, mechanism: ScramMechanism) -> None:
        of_user = self._of_user[user]
        del of_user[mechanism]
        if not of_user:
            del self._of_user[user]

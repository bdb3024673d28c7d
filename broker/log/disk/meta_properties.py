"""Identity of a data directory in `meta.properties`: cluster, node, and directory id (KIP-858).

Follows Kafka's MetaProperties and MetaPropertiesEnsemble.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sluice.config.properties_file import read_properties
from sluice.errors import ConfigError, SluiceError
from sluice.protocol.uuids import printed_uuid, random_uuid, uuid_from_printed

from .file_names import META_PROPERTIES
from .text_files import UnreadableFileError, write_atomically

_FORMATS = {"0": "broker.id", "1": "node.id"}  # version of meta.properties -> property with the node id
_NEWEST_FORMAT = "1"


class Owner(NamedTuple):
    cluster_id: str
    node_id: int
    adopts_cluster_id: bool


class Identity(NamedTuple):
    cluster_id: str
    directory_id: bytes


def identify(directory: str, owner: Owner, random_bytes: Callable[[int], bytes]) -> Identity:
    """Return the identity of a directory; a new one gets the owner's.

    Raises:
        SluiceError: The directory belongs to another broker.
        UnreadableFileError, OSError: The file is unreadable.
    """
    path = f"{directory}/{META_PROPERTIES}"
    values = read_meta_properties(path)
    if values is None:
        directory_id = random_uuid(random_bytes)
        values = {
            "node.id": str(owner.node_id),
            "directory.id": printed_uuid(directory_id),
            "version": _NEWEST_FORMAT,
            "cluster.id": owner.cluster_id,
        }
        write_meta_properties(path, values)
        return Identity(owner.cluster_id, directory_id)
    version = values.get("version", "0")
    if version not in _FORMATS:
        raise SluiceError(f"{path}: unsupported version; expected {' or '.join(_FORMATS)}, got {version}")
    if _FORMATS[version] not in values:
        raise UnreadableFileError(
            f"{path}: no identity; expected {_FORMATS[version]} and others as Kafka writes them. Restore the file, or "
            "delete it if the directory is this broker's"
        )
    cluster_id = values.get("cluster.id", owner.cluster_id)
    if cluster_id != owner.cluster_id and not owner.adopts_cluster_id:
        raise _wrong_owner(path, "cluster.id", cluster_id, f"sluice.cluster.id={owner.cluster_id}")
    node_id = values[_FORMATS[version]]
    if node_id != str(owner.node_id):
        raise _wrong_owner(path, _FORMATS[version], node_id, f"node.id={owner.node_id}")
    return Identity(cluster_id, uuid_from_printed(values.get("directory.id", "")) or random_uuid(random_bytes))


def write_meta_properties(path: str, values: Mapping[str, str]) -> None:
    write_atomically(path, "".join(["#\n", *(f"{key}={value}\n" for key, value in values.items())]), sync=True)


def read_meta_properties(path: str) -> dict[str, str] | None:
    try:
        with open(path, encoding="utf-8") as file:
            return {key: value for _, key, value in read_properties(file.read())}
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise UnreadableFileError(
            f"{path}: binary content; expected text, got byte {error.start} that is not UTF-8"
        ) from None
    except ConfigError as error:
        raise UnreadableFileError(f"{path}: {error}") from None


def _wrong_owner(path: str, name: str, found: str, ours: str) -> SluiceError:
    return SluiceError(f"{path}: data directory of another broker; expected {ours}, got {name}={found}")

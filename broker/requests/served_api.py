"""The header of a handler: how its API is served.

`make generate` writes all headers into `exchange/index.py`, so that a start imports no handler.
"""

from enum import Enum

from msgspec import Struct

from sluice.protocol.types import Range


class Charge(Enum):
    """The charge of a request, in addition to request time for all but NONE (KIP-124)."""

    PRODUCE_BYTES = "produce bytes"
    FETCH_BYTES = "fetch bytes"
    SHARE_FETCH_BYTES = "fetch bytes of a share group"
    MUTATIONS = "controller mutations"  # KIP-599
    REQUEST = "request time alone"
    NONE = "nothing: the client is not authenticated yet"


class ServedApi(Struct, frozen=True):
    name: str
    min_version: int
    max_version: int
    charge: Charge = Charge.REQUEST
    forwarded: bool = False  # brokers forward it to the controller
    cluster_action: bool = False  # only brokers send it, exempt from request quotas if authorized
    advertised_with: str = ""  # the property that adds it to ApiVersions
    cached: bool = False  # equal requests get equal responses until the metadata changes (response_cache.py)


def served(
    name: str,
    versions: str,
    *,
    charge: Charge = Charge.REQUEST,
    forwarded: bool = False,
    cluster_action: bool = False,
    advertised_with: str = "",
    cached: bool = False,
) -> ServedApi:
    """Return the header of a handler; `versions` has the form `0-13`."""
    served_versions = Range(versions)
    first, last = served_versions.first, served_versions.last
    return ServedApi(name, first, last, charge, forwarded, cluster_action, advertised_with, cached)

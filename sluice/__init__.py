"""sluice: a Kafka-compatible test broker that makes clients wait, on purpose and with proof.

The packages stand as folders at the top of the repository and are imported as `sluice.<folder>`. In a checkout
`sluice/<folder>` is a link to them, in a wheel the folder itself. Where links did not survive (a zip download, a clone
without symlinks), the repository's root is added to where this package looks for its parts.
"""

import os.path  # not pathlib: it takes 5 ms, and a start takes 100
from typing import TYPE_CHECKING

from .version import __version__ as __version__

if TYPE_CHECKING:
    from sluice.embedded.broker import Broker
    from sluice.embedded.sync_broker import SyncBroker

__all__ = ["Broker", "SyncBroker"]

_here = os.path.dirname(__file__)  # noqa: PTH120  (see above)
if not os.path.exists(os.path.join(_here, "protocol", "__init__.py")):  # noqa: PTH110, PTH118  (see above)
    __path__.append(os.path.dirname(_here))  # noqa: PTH120  (see above)
del _here


def __getattr__(name: str) -> object:
    """What is public here is loaded when it is first asked for: most who import the package want one part of it."""
    if name == "Broker":
        from sluice.embedded.broker import Broker

        return Broker
    if name == "SyncBroker":
        from sluice.embedded.sync_broker import SyncBroker

        return SyncBroker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

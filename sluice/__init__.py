"""A Kafka-compatible test broker with real quota enforcement, fault injection and client backoff audits.

Four packages are folders at the top of the repository: broker, protocol, purgatory and quotas. In a checkout, links in
this folder lead to them. Where links are missing (a zip download, a clone without symlinks), the root of the repository
is on this package's search path.
"""

import os.path  # not pathlib: its import takes 5 of the 100 ms of a start
from typing import TYPE_CHECKING

from .version import __version__ as __version__

if TYPE_CHECKING:
    from sluice.client.errors import KafkaException
    from sluice.embedded.broker import Broker
    from sluice.embedded.proxy import Proxy
    from sluice.embedded.sync_broker import SyncBroker
    from sluice.embedded.sync_proxy import SyncProxy
    from sluice.errors import (
        ArgumentError,
        BlockedError,
        ClusterError,
        ConfigError,
        DeadlockError,
        ExploreError,
        FaultError,
        NotRunningError,
        ProxyError,
        ProxyFaultError,
        RunawayError,
        ScenarioError,
        SluiceError,
        UnknownResourceError,
        WaitTimeoutError,
    )

__all__ = [
    "ArgumentError",
    "BlockedError",
    "Broker",
    "ClusterError",
    "ConfigError",
    "DeadlockError",
    "ExploreError",
    "FaultError",
    "KafkaException",
    "NotRunningError",
    "Proxy",
    "ProxyError",
    "ProxyFaultError",
    "RunawayError",
    "ScenarioError",
    "SluiceError",
    "SyncBroker",
    "SyncProxy",
    "UnknownResourceError",
    "WaitTimeoutError",
]

# Where the public names are that are not in sluice.errors.
_MODULES = {
    "Broker": "sluice.embedded.broker",
    "KafkaException": "sluice.client.errors",
    "Proxy": "sluice.embedded.proxy",
    "SyncBroker": "sluice.embedded.sync_broker",
    "SyncProxy": "sluice.embedded.sync_proxy",
}

_here = os.path.dirname(__file__)  # noqa: PTH120  (see above)
if not os.path.exists(os.path.join(_here, "protocol", "__init__.py")):  # noqa: PTH110, PTH118  (see above)
    __path__.append(os.path.dirname(_here))  # noqa: PTH120  (see above)
del _here


def __getattr__(name: str) -> object:
    """Import a public name on first use, because most importers need only one part."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES.get(name, "sluice.errors")), name)

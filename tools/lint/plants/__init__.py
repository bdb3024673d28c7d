"""The plants: PLANTS of each module of this folder."""

import pkgutil
from collections.abc import Mapping, Sequence
from importlib import import_module

from tools.lint.plant import Plant

# Rules that fewer than three clients can be made to break.
FEWER: Mapping[str, str] = {
    "reconnects-without-growing-waits": "only Java's client lets such waits grow, by default",
    "request-timeout-too-short": "only librdkafka and Sarama have two timeouts and close the connection at the shorter",
    "throttle-ignored": "only aiokafka and librdkafka ignore throttle times",
}


def all_plants() -> Sequence[Plant]:
    """Return the plants of all modules."""
    modules = [import_module(each.name) for each in pkgutil.iter_modules(__path__, f"{__name__}.")]
    return [plant for module in modules for plant in module.PLANTS]

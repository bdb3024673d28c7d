"""Compare fleets with real systems, and maps with the simulation.

`python -m tools.fleets [models [CLIENT [FAILURE...]] | broker | prediction | maps]`
"""

import os
import sys

from . import broker, maps, prediction
from .compare import FAILURES
from .models import CLIENTS, measure


def main(arguments: list[str]) -> None:
    match arguments:
        case []:
            for each in (["models"], ["broker"], ["prediction"], ["maps"]):
                main(each)
        case ["models", *chosen]:
            available = [client for client in CLIENTS if not client.startswith("java") or "KAFKA_LIBS" in os.environ]
            for client in chosen[:1] or available:
                measure(client, chosen[1:] or list(FAILURES))
        case ["broker"]:
            broker.measure()
        case ["prediction"]:
            prediction.measure()
        case ["maps"]:
            maps.measure()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Compare fleets with real systems: `python -m tests.fleets [models [CLIENT [FAILURE...]] | broker | prediction]`."""

import os
import sys

from . import broker, prediction
from .compare import FAILURES
from .models import CLIENTS, measure


def main(arguments: list[str]) -> None:
    match arguments:
        case []:
            for each in (["models"], ["broker"], ["prediction"]):
                main(each)
        case ["models", *chosen]:
            available = [client for client in CLIENTS if not client.startswith("java") or "KAFKA_LIBS" in os.environ]
            for client in chosen[:1] or available:
                measure(client, chosen[1:] or list(FAILURES))
        case ["broker"]:
            broker.measure()
        case ["prediction"]:
            prediction.measure()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

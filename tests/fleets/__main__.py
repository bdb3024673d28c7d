"""`python -m tests.fleets models CLIENT FAILURE... | broker | prediction`: compare the simulation with real systems."""

import sys

from .compare import FAILURES
from .models import CLIENTS, measure


def main(arguments: list[str]) -> None:
    match arguments:
        case ["models", *chosen]:
            for client in CLIENTS if not chosen else chosen[:1]:
                measure(client, chosen[1:] or list(FAILURES), clients=60)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Run the ordered scripts, and print how many runs show the bug, for each client and version of the application."""

import argparse
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from sluice import SyncBroker, SyncProxy

from .instances import Instance, command_of, compile_java
from .scripts import SCRIPTS

# Of the naive version; a busy machine may need a step longer than a script waits.
_FEWEST = 0.9


def run(name: str, client: str, version: str, classes: Path, *, through_proxy: bool) -> str:
    """Run a script once; return what is wrong at its end, else ""."""
    instances: list[Instance] = []
    with SyncBroker() as broker:
        for topic in ("orders", "bills"):
            broker.cluster.create_topic(topic)
        with SyncProxy(broker.bootstrap) if through_proxy else nullcontext(broker) as front:

            def start(client_id: str) -> Instance:
                command = [*command_of(client, classes), name, version, front.bootstrap, client_id]
                instances.append(Instance(command))
                return instances[-1]

            try:
                return SCRIPTS[name](broker, front, start)
            finally:
                for each in instances:
                    each.kill()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.ordered", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="runs of each script (default: 20)")
    parser.add_argument("--script", choices=SCRIPTS, action="append", help="a script (default: all)")
    parser.add_argument("--client", choices=("librdkafka", "java"), action="append", help="a client (default: both)")
    parser.add_argument("--proxy", action="store_true", help="put a proxy between the application and the broker")
    arguments = parser.parse_args()
    failed = 0
    with TemporaryDirectory() as folder:
        classes = Path(folder)
        clients = arguments.client or ["librdkafka", "java"]
        if "java" in clients:
            compile_java(classes)
        for name in arguments.script or SCRIPTS:
            for client in clients:
                for version in ("naive", "fixed"):
                    began = time.monotonic()
                    found = [
                        run(name, client, version, classes, through_proxy=arguments.proxy)
                        for _ in range(arguments.runs)
                    ]
                    shown = sum(map(bool, found))
                    seconds = (time.monotonic() - began) / arguments.runs
                    problem = next(filter(None, found), "")
                    runs = f"{shown} of {arguments.runs} runs, {seconds:.1f} s each"
                    print(f"{name}, {client}, {version}: {runs}: {problem or 'nothing wrong'}", flush=True)
                    failed += shown > 0 if version == "fixed" else shown < _FEWEST * arguments.runs
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

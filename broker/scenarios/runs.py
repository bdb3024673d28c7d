"""The runs of scenarios on a cluster, one at a time, because they would undo each other's steps."""

from itertools import count

from sluice.broker.server.cluster_server import ClusterServer
from sluice.errors import ClusterError, UnknownResourceError

from .model import Scenario
from .run import Run

# Number of finished runs to keep.
_MOST = 100


class Runs:
    def __init__(self, server: ClusterServer) -> None:
        self._server = server
        self._numbers = count(1)
        self._runs: dict[str, Run] = {}

    def start(self, scenario: Scenario, *, keep: bool) -> Run:
        under_way = next((run for run in self._runs.values() if not run.done), None)
        if under_way is not None:
            raise ClusterError(f"{under_way.run_id} ({under_way.scenario.name}) is in progress. Stop it first")
        run = Run(scenario, self._server, run_id=f"run-{next(self._numbers)}", keep=keep)
        run.start()
        self._runs[run.run_id] = run
        if len(self._runs) > _MOST:
            del self._runs[next(iter(self._runs))]
        return run

    def get(self, run_id: str) -> Run:
        run = self._runs.get(run_id)
        if run is None:
            runs = f"expected one of {', '.join(self._runs)}" if self._runs else "no scenario has run yet"
            raise UnknownResourceError(f"unknown run {run_id}; {runs}")
        return run

    def all(self) -> list[Run]:
        return list(self._runs.values())

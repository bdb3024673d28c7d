"""The run that fails, once more, for its trace."""

from sluice.embedded.traces.started import Position, Recorded, Recorder
from sluice.explore.execution import Options, Program, execute
from sluice.explore.reduction import Found

_NS_PER_S = 1_000_000_000


def record(recorder: Recorder, program: Program, found: Found, options: Options) -> None:
    """Execute the run again, and add its clusters, with what happened, to a recorder."""
    own = Recorder()
    outcome = execute(program, found.schedule, options, own)
    notes = [(outcome.began_ns + round(at_s * _NS_PER_S), text) for at_s, text in outcome.happened]
    for recorded in own.recorded():
        ended = _Ended(recorded._replace(notes=notes))
        recorder.add(ended, ended)
        notes = []


class _Ended:
    """A cluster of a run that has ended, as a recorder reads it."""

    _has_stopped = True

    def __init__(self, recorded: Recorded) -> None:
        self._all = recorded

    @property
    def _position(self) -> Position:
        return Position(self, len(self._all.events))

    def _recorded(self, after: int = 0) -> Recorded:
        return self._all

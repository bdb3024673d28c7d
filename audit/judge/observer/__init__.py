"""The observer: what the journal tells, as sequences of attempts. Pure functions of events.

Which requests are tries of the same thing differs by what is tried: connections.py, batches.py, calls.py. What a client
was told to wait is in throttles.py, who it is in identity.py.
"""

from collections.abc import Sequence

from sluice.audit.judge.model.attempts import AttemptSequence
from sluice.journal_events import AnyEvent

from .batches import produce_sequences
from .calls import call_sequences
from .connections import connect_sequences

__all__ = ["sequences"]


def sequences(events: Sequence[AnyEvent]) -> list[AttemptSequence]:
    """All tries of all clients, by when the first one came."""
    found = [*connect_sequences(events), *produce_sequences(events), *call_sequences(events)]
    return sorted(found, key=lambda sequence: sequence.attempts[0].at_ns)

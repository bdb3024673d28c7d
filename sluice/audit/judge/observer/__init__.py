"""The observer: derives sequences of attempts from journal events. Pure functions."""

from collections.abc import Sequence

from sluice.audit.judge.model.attempts import AttemptSequence
from sluice.journal_events import AnyEvent

from .batches import produce_sequences
from .calls import call_sequences
from .connections import connect_sequences

__all__ = ["sequences"]


def sequences(events: Sequence[AnyEvent]) -> list[AttemptSequence]:
    found = [*connect_sequences(events), *produce_sequences(events), *call_sequences(events)]
    return sorted(found, key=lambda sequence: sequence.attempts[0].at_ns)

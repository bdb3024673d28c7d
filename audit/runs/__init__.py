"""Runs of probes with subjects.

    result = await audit([SUBJECTS["aiokafka"]], list(PROBES.values()), budget=Budget(seconds=300))

Probes run in parallel, each with its own brokers in this process, and are repeated until the verdicts are certain or
the budget is spent (subject_audit.py).
"""

from .audit import audit
from .progress import Budget, Progress

__all__ = ["Budget", "Progress", "audit"]

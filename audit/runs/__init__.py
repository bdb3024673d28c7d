"""Runs of probes with subjects, and what comes of them.

    result = await audit([SUBJECTS["aiokafka"]], list(PROBES.values()), budget=Budget(seconds=300))

Probes run side by side, each on brokers of its own in this process, and again until the verdicts are sure or the budget
is spent (subject_audit.py). Whatever ends it, all that it started has ended when it returns.
"""

from .audit import audit
from .progress import Budget, Progress

__all__ = ["Budget", "Progress", "audit"]

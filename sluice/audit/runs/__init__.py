"""Runs of probes with subjects.

result = await audit([SUBJECTS["aiokafka"]], list(PROBES.values()), budget=Budget(seconds=300))
"""

from .audit import audit
from .progress import Budget, Progress

__all__ = ["Budget", "Progress", "audit"]

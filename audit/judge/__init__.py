"""The judge: what attempts say about a client, held against what the KIPs say and how the client is configured.

`judge` and `findings` are about runs of probes; `judge_sequence` is about one sequence of attempts from any journal.
fit.py says which backoff explains waits; expected.py which one the settings demand; growth.py, limits.py and spread.py
hold waits against it; kip*.py have one rule for each statement.
"""

from .findings import findings
from .judging import judge, judge_sequence

__all__ = ["findings", "judge", "judge_sequence"]

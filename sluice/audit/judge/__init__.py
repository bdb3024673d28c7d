"""The judge: compares a client's attempts with the KIPs and with the client's configuration.

`judge` and `findings` evaluate runs of probes; `judge_sequence` evaluates one sequence of attempts from any journal.
expected.py computes the required waits, fit.py the backoff that explains the observed ones; growth.py, limits.py and
spread.py compare them.
"""

from .findings import findings
from .judging import judge, judge_sequence

__all__ = ["findings", "judge", "judge_sequence"]

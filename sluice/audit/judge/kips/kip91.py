"""KIP-91: how long a producer retries a batch.

A client may fail a record while its request is still in flight. So statements about attempts are judged by requests
(delivery_attempts.py), statements about outcomes by the driver's events (delivery_outcomes.py).
"""

from collections.abc import Callable

from sluice.audit.judge.case import Case
from sluice.audit.judge.model.verdict import Verdict

from . import delivery_attempts, delivery_outcomes

RULES: dict[str, Callable[[Case], Verdict]] = {**delivery_attempts.RULES, **delivery_outcomes.RULES}

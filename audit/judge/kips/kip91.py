"""KIP-91: how long a producer goes on with a batch.

On the wire there is only the last attempt: a client may have failed a record while its request is still on its way. So
what is about attempts is judged by them (delivery_attempts.py), and what an application is told by what a driver told
(delivery_outcomes.py); of a client that is only watched that is not observable.
"""

from collections.abc import Callable

from sluice.audit.judge.case import Case
from sluice.audit.judge.model.verdict import Verdict

from . import delivery_attempts, delivery_outcomes

RULES: dict[str, Callable[[Case], Verdict]] = {**delivery_attempts.RULES, **delivery_outcomes.RULES}

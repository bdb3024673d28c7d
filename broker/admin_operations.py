"""All that the admin port can be asked, in the order in which a request is compared with the paths."""

from .admin_cluster import OPERATIONS as OF_CLUSTER
from .admin_faults import OPERATIONS as OF_FAULTS
from .admin_journal import OPERATIONS as OF_JOURNAL
from .admin_metrics import OPERATIONS as OF_METRICS
from .admin_openapi import OPERATIONS as OF_THE_DOCUMENT
from .admin_operation import Operation
from .admin_quotas import OPERATIONS as OF_QUOTAS
from .admin_scenarios import OPERATIONS as OF_SCENARIOS

OPERATIONS: tuple[Operation, ...] = (
    *OF_METRICS,
    *OF_THE_DOCUMENT,
    *OF_CLUSTER,
    *OF_FAULTS,
    *OF_JOURNAL,
    *OF_QUOTAS,
    *OF_SCENARIOS,
)

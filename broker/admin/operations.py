"""All operations of the admin port, in the order of path matching."""

from sluice.broker.admin.resources.cluster import OPERATIONS as OF_CLUSTER
from sluice.broker.admin.resources.faults import OPERATIONS as OF_FAULTS
from sluice.broker.admin.resources.journal import OPERATIONS as OF_JOURNAL
from sluice.broker.admin.resources.metrics import OPERATIONS as OF_METRICS
from sluice.broker.admin.resources.quotas import OPERATIONS as OF_QUOTAS
from sluice.broker.admin.resources.scenarios import OPERATIONS as OF_SCENARIOS

from .openapi import OPERATIONS as OF_THE_DOCUMENT
from .operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *OF_METRICS,
    *OF_THE_DOCUMENT,
    *OF_CLUSTER,
    *OF_FAULTS,
    *OF_JOURNAL,
    *OF_QUOTAS,
    *OF_SCENARIOS,
)

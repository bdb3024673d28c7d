"""`/api/v1/observe` of the admin port: the end of all fault rules, quotas and scenarios in one request."""

import msgspec

from sluice.broker.admin.operation import AdminContext, Nothing, Operation


class Removed(msgspec.Struct):
    """What was in force.

    faults: ids of fault rules
    quotas: number of quotas, also of those from properties
    scenario: id of the run that was stopped, else ""
    """

    faults: list[str]
    quotas: int
    scenario: str


async def _observe(context: AdminContext, params: Nothing, body: Nothing) -> Removed:
    run = next((run for run in context.runs.all() if not run.done), None)
    if run is not None:
        run.stop()  # first: it restores quotas
    quotas = context.server.cluster.client_quotas.clear()  # before the rules, which release requests
    rules = context.server.faults
    removed = [fault.id for fault in rules]
    rules.clear()
    return Removed(removed, quotas, "" if run is None else run.run_id)


# fmt: off
# one operation per row
OPERATIONS = (
    Operation.of("POST", "/api/v1/observe", "Remove all fault rules and quotas, and stop the scenario in progress.",
                 _observe),
)
# fmt: on

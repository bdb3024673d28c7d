"""The probes: faults with workloads, as data, by name.

    PROBES["reconnect-closed"].what

sluice/audit/judge/model/statements.py lists the probes of each statement. Backoffs are shorter than the defaults where
a statement allows it.
"""

import msgspec

from . import connection_setup, consuming, control_requests, delivering, outages, producing, reconnecting, throttling
from .probe import Probe

_MODULES = (reconnecting, connection_setup, producing, control_requests, consuming, delivering, throttling, outages)
PROBES: dict[str, Probe] = {
    probe.name: msgspec.structs.replace(probe, cluster=msgspec.structs.replace(probe.cluster, name=probe.name))
    for module in _MODULES
    for probe in module.PROBES
}

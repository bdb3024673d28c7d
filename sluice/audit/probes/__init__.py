"""The probes: faults with workloads, as data, by name.

    PROBES["reconnect-closed"].what

sluice/audit/judge/model/statements.py lists the probes of each statement. Backoffs are shorter than the defaults where
a statement allows it.
"""

import msgspec

from . import connection_setup, consuming, control_requests, delivering, outages, producing, reconnecting, throttling
from .probe import (
    FREE_ADDRESS,
    GROUP,
    POLL_MS,
    RECORDS,
    TOPIC,
    Begin,
    Call,
    Consume,
    Probe,
    Produce,
    Setting,
    Workload,
)

__all__ = [
    "FREE_ADDRESS",
    "GROUP",
    "POLL_MS",
    "PROBES",
    "RECORDS",
    "TOPIC",
    "Begin",
    "Call",
    "Consume",
    "Probe",
    "Produce",
    "Setting",
    "Workload",
]

PROBES: dict[str, Probe] = {
    probe.name: msgspec.structs.replace(probe, cluster=msgspec.structs.replace(probe.cluster, name=probe.name))
    for module in (
        reconnecting,
        connection_setup,
        producing,
        control_requests,
        consuming,
        delivering,
        throttling,
        outages,
    )
    for probe in module.PROBES
}

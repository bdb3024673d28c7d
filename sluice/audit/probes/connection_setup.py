"""Connections that fail before the first request: rejected logins, lost brokers, stalled TLS handshakes (KIP-144).

The listeners do not answer TLS handshakes.
"""

from sluice.audit.judge.model.observation import BOOTSTRAP_LISTENER
from sluice.broker.faults.actions.connections import RefuseConnections, SilentConnections
from sluice.broker.faults.actions.no_response import Close
from sluice.broker.faults.rule import Rule

from .incidents import AFTER_API_VERSIONS, RECONNECTING, broken, cluster, rule
from .probe import FREE_ADDRESS, Begin, Probe

_BROKERS = "PLAINTEXT"
_LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="audit" password="wrong";'

PROBES = (
    Probe(
        name="reconnect-sasl-rejected",
        what="The broker rejects the client's password (SASL/PLAIN).",
        cluster=cluster(9, listeners="SASL_PLAINTEXT://127.0.0.1:0", sluice_sasl_users="audit:right"),
        begins=Begin.AT_ONCE,
        settings={
            **RECONNECTING,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": _LOGIN,
            "sasl.username": "audit",
            "sasl.password": "wrong",
        },
        needs_settings=True,
    ),
    Probe(
        name="reconnect-all-lost",
        what="The brokers of the metadata close all connections; the bootstrap address, another one, works.",
        cluster=cluster(
            10,
            broken(
                0,
                8,
                Rule(action=RefuseConnections(how="fin"), listener=_BROKERS),
                Rule(action=Close(), api=AFTER_API_VERSIONS, listener=_BROKERS),
            ),
            listeners=f"{BOOTSTRAP_LISTENER}://127.0.0.1:0,{_BROKERS}://{FREE_ADDRESS}",
            advertised_listeners=f"{BOOTSTRAP_LISTENER}://{FREE_ADDRESS},{_BROKERS}://{FREE_ADDRESS}",
            listener_security_protocol_map=f"{BOOTSTRAP_LISTENER}:PLAINTEXT,{_BROKERS}:PLAINTEXT",
            inter_broker_listener_name=_BROKERS,
        ),
        settings={**RECONNECTING, "metadata.recovery.strategy": "rebootstrap"},
    ),
    Probe(
        name="reconnect-tls-stalled",
        what="TLS handshakes are not answered.",
        cluster=cluster(14, broken(0, 13.9, rule(SilentConnections()))),
        begins=Begin.AT_ONCE,
        settings={
            **RECONNECTING,
            "security.protocol": "SSL",
            "request.timeout.ms": 10_000,
            "reconnect.backoff.max.ms": 100,
            "socket.connection.setup.timeout.ms": 1000,
            "socket.connection.setup.timeout.max.ms": 2000,
        },
        needs_settings=True,
    ),
)

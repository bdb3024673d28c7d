"""Kafka properties without effect in sluice, so that files and environments for Kafka are accepted.

ignored_properties.txt lists the names that are not in Kafka 4.4 (kafka_properties.txt): those of 3.9, including
internal ones, those removed by 3.0, and a misspelled one of Kafka's own tests. Loaded only for names that sluice does
not define.
"""

from pathlib import Path

NAMES = frozenset(Path(__file__).with_name("ignored_properties.txt").read_text().split())

# Prefixes of properties of listeners and plug-ins.
PREFIXES = ("listener.name.", "config.providers.", "rlmm.config.", "rsm.config.")

# Variables that the start scripts of the Apache image read; they are not properties.
ENVIRONMENT = frozenset(
    {
        "KAFKA_DEBUG", "KAFKA_GC_LOG_OPTS", "KAFKA_HEAP_OPT", "KAFKA_HEAP_OPTS", "KAFKA_HOME", "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS", "KAFKA_JMX_PORT", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_LOG4J_LOGGERS", "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL", "KAFKA_OPTS", "KAFKA_TOOLS_LOG4J_LOGLEVEL", "KAFKA_VERSION",
    }
)  # fmt: skip

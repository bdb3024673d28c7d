"""A session of quota commands with Kafka's kafka-configs, and its output.

`python -m tests.clients.configs_command HOST:PORT` prints the output for a broker without quotas; `configs_command.txt`
is that of Apache Kafka 4.4.
"""

import sys
from pathlib import Path

from tests.clients.kafka_commands import run_command

EXPECTED = Path(__file__).with_suffix(".txt")

_USERS, _CLIENTS, _IPS = "--entity-type users", "--entity-type clients", "--entity-type ips"
_ALL_KEYS = "producer_byte_rate=1024,consumer_byte_rate=2048,request_percentage=200,controller_mutation_rate=2.5"
CALLS = (
    f"--describe {_USERS}",
    f"--alter {_USERS} --entity-name alice --add-config {_ALL_KEYS}",
    f"--describe {_USERS} --entity-name alice",
    f"--alter {_USERS} --entity-name alice {_CLIENTS} --entity-name c --add-config producer_byte_rate=1",
    f"--alter {_USERS} --entity-default --add-config consumer_byte_rate=3",
    f"--alter {_USERS} --entity-default {_CLIENTS} --entity-default --add-config consumer_byte_rate=4",
    f"--describe {_USERS} --entity-default",
    f"--describe {_USERS} --entity-name alice {_CLIENTS} --entity-name c",
    f"--describe {_USERS} --entity-name alice {_CLIENTS}",
    "--alter --client gold --add-config producer_byte_rate=7",
    "--alter --client-defaults --add-config producer_byte_rate=8",
    f"--describe {_CLIENTS} --entity-name gold",
    "--describe --client-defaults",
    "--alter --ip 10.0.0.1 --add-config connection_creation_rate=5",
    "--alter --ip-defaults --add-config connection_creation_rate=6",
    f"--describe {_IPS} --entity-name 10.0.0.1",
    "--describe --ip-defaults",
    f"--alter {_USERS} --entity-name alice --delete-config producer_byte_rate,request_percentage",
    f"--describe {_USERS} --entity-name alice",
    f"--alter {_USERS} --entity-name alice --delete-config producer_byte_rate",
    f"--alter {_USERS} --entity-name alice --add-config producer_byte_rate=0",
    f"--alter {_USERS} --entity-name alice --add-config producer_byte_rate=1.5",
    f"--alter {_USERS} --entity-name alice --add-config connection_creation_rate=5",
    "--alter --ip 10.0.0.1 --add-config connection_creation_rate=0",
    f"--alter {_USERS} --entity-name alice --add-config nonsense=5",
)


def transcript(bootstrap: str) -> str:
    """Return all calls in order, each with its sorted output lines."""
    return "".join(f"$ {call}\n{_printed(bootstrap, call)}" for call in CALLS)


def _printed(bootstrap: str, call: str) -> str:
    done = run_command("kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap, *call.split())
    lines = done.text.replace(bootstrap, "HOST:PORT").splitlines()
    # Of a failure only the message, without the Java stack trace.
    shown = sorted(_ordered(line) for line in lines if line.strip() and not line.startswith(("\tat ", "SLF4J: ")))
    return "".join(f"{line}\n" for line in (*shown, f"exit code {done.code}"))


def _ordered(line: str) -> str:
    """Sort the quotas in a line: Java's maps have no order."""
    whose, are, quotas = line.partition(" are ")
    return whose + are + ", ".join(sorted(quotas.split(", ")))


if __name__ == "__main__":
    print(transcript(sys.argv[1]), end="")

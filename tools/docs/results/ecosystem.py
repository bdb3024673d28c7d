"""Writes docs/compatibility/tools.md from what these tests found, with --write-tools-table."""

from pathlib import Path

import pytest

from tools.docs.tables import line

PAGE = Path(__file__).parents[3] / "docs" / "compatibility" / "tools.md"
HEAD = """# Tools

These tools for Apache Kafka work with sluice: command-line tools, connectors, stream processors and a schema registry.
Use them against a broker for tests as you would against Kafka; [Client compatibility](../clients.md) lists libraries.

"ok" means that a test with the real tool passes. `tools/campaign run ecosystem` runs `tests/ecosystem`, and
writes this page with `--write-tools-table`. `make test` runs the sessions of Kafka's commands and kcat.

"""
COMMANDS = """
## Commands

The sessions are in `tests/ecosystem/commands.txt` and `kcat.txt`. Delegation tokens are not implemented:
`kafka-delegation-tokens` reports an UnsupportedVersionException.

"""
TAIL = """
## Run a schema registry on sluice

Apicurio Registry keeps its schemas in a topic of the broker (storage `kafkasql`), so a test needs no database. It
serves Apicurio's API, and the API of Confluent's registry at `/apis/ccompat/v7`. It needs Java 21.

```
mvn dependency:copy -Dartifact=io.apicurio:apicurio-registry-app:3.3.3:tar.gz:all -DoutputDirectory=.
tar -xzf apicurio-registry-app-3.3.3-all.tar.gz
APICURIO_STORAGE_KIND=kafkasql APICURIO_KAFKASQL_BOOTSTRAP_SERVERS=127.0.0.1:9092 QUARKUS_HTTP_PORT=8081 \\
    java -jar quarkus-run.jar
```

Wait for status 200 from `http://127.0.0.1:8081/apis/registry/v3/search/artifacts`, and set these properties in your
producer or consumer:

| property | value |
| --- | --- |
| `value.serializer` | `io.apicurio.registry.serde.avro.AvroKafkaSerializer` |
| `value.deserializer` | `io.apicurio.registry.serde.avro.AvroKafkaDeserializer` |
| `apicurio.registry.url` | `http://127.0.0.1:8081/apis/registry/v3` |
| `apicurio.registry.auto-register` | `true` |

`tests/ecosystem/apicurio/Orders.java` is a complete example. Karapace has no release on PyPI, and is not tested.
"""


def rows_of(page: str) -> dict[str, dict[str, str]]:
    """Return the rows of both tables by their first cells."""
    tools, commands = [*page.split("\n## "), ""][:2]
    found = {}
    for name, text in (("tool", tools), ("commands", commands)):
        lines = [one for one in text.splitlines(keepends=True) if one.startswith("| ")]
        found[name] = {one.split(" | ")[0].removeprefix("| "): one for one in lines[2:]}
    return found


class TableWriter:
    """Collects the results of the tools, and writes the page at the end. Tools that did not run keep their rows."""

    def __init__(self) -> None:
        self._rows = rows_of(PAGE.read_text() if PAGE.exists() else "")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = {name: str(value) for name, value in report.user_properties}
        if "tool" not in found or report.when != "call" or report.skipped:
            return
        outcome = "ok" if report.passed else "fails"
        tool, _, shown = found["tool"].partition(": ")
        if "commands" in found:
            self._rows["commands"][tool] = line([tool, found["version"], shown, found["commands"], outcome])
        else:
            self._rows["tool"][tool] = line([tool, found["version"], found["shown"], outcome])

    def pytest_sessionfinish(self) -> None:
        PAGE.parent.mkdir(exist_ok=True)
        tools = [line(["tool", "version", "tested", ""]), line(["---", "---", "---", ":-:"])]
        commands = [line(["commands", "version", "tested", "calls", ""]), line(["---", "---", "---", "--:", ":-:"])]
        tools += self._rows["tool"].values()
        commands += self._rows["commands"].values()
        PAGE.write_text(HEAD + "".join(tools) + COMMANDS + "".join(commands) + TAIL)

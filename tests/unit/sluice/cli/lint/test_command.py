"""`sluice lint` on files: its output, its filters, its files and its exit codes."""

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sluice.cli.main import cli
from tests.support.journals import Journal


def run(*args: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["lint", *map(str, args)], input=stdin)


def journal() -> bytes:
    """Return a journal in which one client has no id, and two have one."""
    made = Journal(client_id="", software=("apache-kafka-java", "4.4.0"))
    made.request("Metadata", 0, 1)
    made.beside(client_id="shop", software=("librdkafka", "2.14.0")).request("Metadata", 2, 3)
    made.beside(client_id="till").request("Metadata", 4, 5)
    return made.ndjson


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.ndjson"
    path.write_bytes(journal())
    return path


def test_clients_and_findings_are_shown(file: Path) -> None:
    assert run(file, "--rule", "no-client-id").stdout == (
        f"{file}: 3 events, 3 clients\n"
        "\n"
        "client id       software                 requests  findings\n"
        "(no client id)  apache-kafka-java 4.4.0  1         1 info\n"
        "shop            librdkafka 2.14.0        1         none\n"
        "till                                     1         none\n"
        "\n"
        "info no-client-id: client (no client id) (apache-kafka-java 4.4.0)\n"
        "  1 requests with no client id (event 1 at 22:13:20.001)\n"
        "  Java client: client.id=<application>\n"
        "\n"
        "1 info\n"
    )


@pytest.mark.parametrize("form", ["gzip", "standard input", "Parquet"])
def test_other_forms_of_the_source_are_equal(form: str, file: Path, tmp_path: Path) -> None:
    expected = json.loads(run(file, "--json").stdout)
    if form == "standard input":
        found = run("-", "--json", stdin=journal())
    elif form == "gzip":
        path = tmp_path / "run.gz"
        path.write_bytes(gzip.compress(journal()))
        found = run(path, "--json")
    else:
        parquet = pytest.importorskip("sluice.spark.journal_parquet")
        path = tmp_path / "run.parquet"
        parquet.write(str(path), journal().decode().splitlines())
        found = run(path, "--json")
    assert {**json.loads(found.stdout), "source": None} == {**expected, "source": None}


@pytest.mark.parametrize(
    ("fail_on", "code"), [("error", 0), ("warning", 0), ("info", 1), ("never", 0)], ids=lambda each: str(each)
)
def test_the_exit_code_follows_the_severity(file: Path, fail_on: str, code: int) -> None:
    assert run(file, "--rule", "no-client-id", "--fail-on", fail_on).exit_code == code


def test_known_findings_are_not_reported(file: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    run(file, "--rule", "no-client-id", "--write-baseline", known)
    again = run(file, "--rule", "no-client-id", "--baseline", known, "--fail-on", "info")
    assert again.exit_code == 0
    assert again.stdout.endswith("no findings; 1 known in the baseline\n")


def test_a_client_id_selects_clients_and_findings(file: Path) -> None:
    found = json.loads(run(file, "--client-id", "shop", "--json").stdout)
    assert [each["client"]["client_id"] for each in found["clients"]] == ["shop"]
    assert "no-client-id" not in {each["rule"] for each in found["findings"]}


def test_reports_are_written(file: Path, tmp_path: Path) -> None:
    html, junit, sarif = (tmp_path / name for name in ("a.html", "a.xml", "a.sarif"))
    run(file, "--html", html, "--junit", junit, "--sarif", sarif, "--sarif-location", "client.properties")
    assert "no-client-id" in html.read_text()
    assert junit.read_text().startswith("<?xml")
    assert "client.properties" in sarif.read_text()


def test_rules_are_listed_and_explained() -> None:
    assert "no-client-id" in run("--list-rules").stdout
    explained = run("--explain", "no-client-id").stdout
    assert explained.startswith("no-client-id: Clients without a client id of their own (info, about each client)\n")
    assert "librdkafka: client.id=<application>\n" in explained


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{}", "line 1: expected an event of sluice's journal as JSON, got {}: Object missing required field `kind`"),
        ('{"kind":"gap","seq":1,"at_ns":1,"broker":0,"lost":1}\nnone', "line 2: expected an event"),
        ("PAR1", "invalid Parquet file: "),
        ("\x1f\x8b", "cannot read: "),
    ],
    ids=["no event", "a broken line", "no Parquet", "no gzip"],
)
def test_a_bad_source_is_one_line(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content.encode("latin-1"))
    found = run(path)
    assert found.exit_code == 1
    assert found.stderr.startswith(f"Error: {path}: {problem}")
    assert found.stderr.count("\n") == 1


WRONG_USAGE = [
    ((), "SOURCE: missing; expected a file, -, or the URL of an admin port or a topic"),
    (("ftp://x",), "SOURCE: expected a file, -, http://HOST:PORT (an admin port) or kafka://HOST:PORT/TOPIC, got"),
    (("kafka://x",), "SOURCE: expected kafka://HOST:PORT/TOPIC, got kafka://x"),
    (("-", "--rule", "no-client-ids"), "--rule: expected one of"),
    (("--explain", "none"), "--explain: expected one of"),
]


@pytest.mark.parametrize(("args", "problem"), WRONG_USAGE)
def test_wrong_usage_is_one_line(args: tuple[str, ...], problem: str) -> None:
    found = run(*args)
    assert found.exit_code == 2
    assert found.stderr.startswith(f"Error: {problem}")
    assert found.stderr.count("\n") == 1

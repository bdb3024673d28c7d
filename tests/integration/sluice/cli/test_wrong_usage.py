"""Wrong usages of all commands beside a running broker: one line that states the place and the problem."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from sluice.cli.main import cli
from tests.support.broker_process import overrides, running_broker
from tests.support.ports import refusing_address

FILES = {
    "broken.toml": "name = \n",
    "rule.toml": '[[faults]]\naction = "clos"\n',
    "scenario.toml": 'name = "x"\nduration = "1s"\n[[steps]]\nat = "0s"\nstop = 9\n',
    "empty.json": "{}",
    "text.txt": "hello\n",
}
KAFKA = "expected the admin HTTP port, got a port of the Kafka protocol"
BYTES = "expected bytes per second of at least 1, such as 2M, 512Ki or 1e6, got"

# {B}: --bootstrap of the broker; {A}: its --admin. Command line -> exit code and a part of the message, or parts with
# `...` between them.
USAGES = {
    "quota list --bootstrap {admin}": (2, "--bootstrap: expected HOST:PORT, got http://"),
    "quota list --bootstrap {web}": (
        1,
        "Error: {web}: expected a port of the Kafka protocol, got an HTTP port. Set --bootstrap to the broker's Kafka "
        "port; --admin accepts an admin port\n",
    ),
    "quota list --bootstrap {closed}": (1, "{closed}: could not connect: Connection refused"),
    "quota list --bootstrap localhost": (2, "--bootstrap: expected HOST:PORT, got localhost"),
    "quota list --bootstrap localhost:99999": (2, "--bootstrap: expected HOST:PORT, got localhost:99999"),
    "proxy --upstream {web}": (1, "Error: upstream {web}: ...; expected a response of a Kafka broker\n"),
    "proxy --upstream {closed} --port 1 --override listeners=SSL://127.0.0.1:1": (
        2,
        "Error: --host, --port: listeners is set, too; expected the addresses in one of them\n",
    ),
    "proxy --upstream {closed} --sasl-passthrough": (2, "--sasl-passthrough: expected SASL_PLAINTEXT or SASL_SSL as"),
    "quota list {B} --user a --user-default": (2, "--user and --user-default exclude each other"),
    "quota list {B} --user a --ip 1.2.3.4": (1, "INVALID_REQUEST: Invalid entity filter component combination."),
    "quota list {B} extra": (2, "extra: unexpected argument"),
    "quota set {B} --client a": (2, "KEY=VALUE...: missing"),
    "quota set {B} producer_byte_rate=5": (2, "no entity; expected --user, --client, --ip"),
    "quota set {B} --user a producer_byte_rate": (2, "quota: expected KEY=VALUE with a key of "),
    "quota set {B} --user a x=1 x=2": (2, "x: given twice"),
    "quota set {B} --user a x=5": (1, "user a: INVALID_REQUEST: Invalid configuration key x"),
    "quota set {B} --client a producer_byte_rat=1M": (
        2,
        "producer_byte_rat: unknown quota; expected one of producer_byte_rate, ",
    ),
    "quota set {B} --client a produce=1M producer_byte_rate=2M": (2, "producer_byte_rate: given twice"),
    "quota set {B} --client a fetch=0": (2, f"consumer_byte_rate: {BYTES} 0"),
    "quota set {B} --client a producer_byte_rate=-5": (2, f"producer_byte_rate: {BYTES} -5"),
    "quota set {B} --client a producer_byte_rate=2X": (2, f"producer_byte_rate: {BYTES} 2X"),
    "quota set {B} --client a request_percentage=lots": (2, "request_percentage: expected a number, got lots"),
    "quota set {B} --client-default request_percentage=0": (1, "client-id <default>: INVALID_REQUEST: Quota request"),
    "quota set {B} --client a request_percentage=nan": (2, "request_percentage: expected a number, got nan"),
    "quota set {B} --client '' producer_byte_rate=5": (1, "client-id '': INVALID_REQUEST: Empty client-id"),
    "quota set {B} --ip nowhere connection_creation_rate=5": (1, "ip nowhere: INVALID_REQUEST: nowhere is not a valid"),
    "quota set {B} --ip 1.2.3.4 producer_byte_rate=5": (1, "Invalid configuration key producer_byte_rate"),
    "quota set {B} --user a --ip 1.2.3.4 x=5": (1, "Invalid quota entity combination"),
    "quota delete {B} --user a producer_byte_rate": (1, "user a: producer_byte_rate is not set"),
    "quota delete {B} --client a fetch": (1, "client-id a: consumer_byte_rate is not set"),
    "quota delete {B} --client a fech": (2, "fech: unknown quota; expected one of "),
    "quota delete {B} --client a": (2, "KEY...: missing"),
    "explain absent {A}": (1, "client absent of user ANONYMOUS: no connections and no recorded usage. Check"),
    "explain '' {A}": (1, "client '' of user ANONYMOUS: no connections"),
    "explain $'a\nb' {A}": (1, r"client '$a\nb' of user ANONYMOUS: no connections"),
    "explain a --admin {kafka}": (2, "--admin: expected http://HOST:PORT or https://HOST:PORT, got {kafka}"),
    "explain a --admin https://{web}": (1, "no connection: TLS failed. Use http:// for a port without TLS."),
    "explain a --admin {admin}/api": (1, "there is no such path; /api/openapi.json lists all paths"),
    "faults add {A}": (2, "expected either a rule as NAME=VALUE or --file"),
    "faults add action=close --file rule.toml {A}": (2, "expected either a rule as NAME=VALUE or --file"),
    "faults add action=clos {A}": (2, "action: expected one of error, ..., got clos. Did you mean close?"),
    "faults add api=Produce {A}": (2, "action: missing; expected action=KIND with one of "),
    "faults add action=error {A}": (2, "fault.action.code: missing"),
    "faults add action=error code=NOPE {A}": (2, "fault.action.code: unknown error code 'NOPE'"),
    "faults add action=close api=Prodce {A}": (2, "fault.api: unknown API 'Prodce'. Did you mean Produce?"),
    "faults add action=close colour=red {A}": (2, "colour: unknown field for action=close; expected one of "),
    "faults add action=delay ms=soon {A}": (2, "fault.action.ms: expected 250ms, 5s, 2m, or a number of milliseconds"),
    "faults add action=close times=0 {A}": (2, "fault.times: expected 1 or more, got 0"),
    "faults add action=close times=1 during=5s {A}": (2, "fault.during: expected at most one of times, during, on"),
    "faults add action=close broker=7 {A}": (2, "fault.broker: unknown broker; expected one of 1, got 7"),
    "faults add --file none.toml {A}": (2, "none.toml: cannot read: No such file or directory"),
    "faults add --file text.txt {A}": (2, "text.txt: expected a file name that ends in .toml, .yaml, .yml, .json"),
    "faults add --file broken.toml {A}": (2, "broken.toml: Invalid value (at line 1, column 8)"),
    "faults add --file rule.toml {A}": (2, "rule.toml: faults[0].action: expected one of error, "),
    "faults remove {A}": (2, "expected either ids of rules or --all"),
    "faults remove none {A}": (1, "404: unknown fault rule 'none'; none exists"),
    "top --once --sort size {A}": (2, "--sort: expected one of activity, quota, throttled, name, got size"),
    "journal tail --last -1 {A}": (2, "--last: expected an integer of at least 0, got -1"),
    "journal tail --last 1 --after 1 {A}": (2, "--last and --after exclude each other"),
    "journal tail --api Prodce {A}": (2, "Prodce"),
    "journal tail --kind dream {A}": (2, "kind: expected one of connection-opened, "),
    "journal export events.csv {A}": (2, "events.csv: expected a name that ends in .ndjson or .parquet"),
    "journal export none/events.ndjson {A}": (1, "none/events.ndjson: No such file or directory"),
    "run": (2, "FILE|NAME: missing"),
    "run rolling-restat": (2, "rolling-restat: unknown scenario; expected a file that ends in .toml, "),
    "run none.toml": (2, "none.toml: cannot read: No such file or directory"),
    "run broken.toml": (2, "broken.toml: Invalid value (at line 1, column 8)"),
    "run empty.json": (2, "empty.json: name: missing"),
    "run scenario.toml": (2, "scenario.toml: steps[0].stop: at 0 ms: unknown broker; expected one of 1, got 9"),
    "run rolling-restart --against {admin}": (1, "409: brokers: the scenario expects 1, 2, 3, got 1"),
    "run rolling-restart --against {admin} --port 0": (2, "--port and --against exclude each other"),
    "run rolling-restart --keep": (2, "--keep needs --against"),
    "run rolling-restart --token x": (2, "--token needs --against"),
    "run rolling-restart --override x=1": (2, "--override: x: no such property"),
    "run slow-broker --port {port} --admin-port 0": (1, "cannot listen on {kafka}: Address already in use"),
    "fleet run nothing --fleet kafka-4.4:1": (2, "nothing: unknown scenario"),
    "fleet run leader-ping-pong": (2, "--fleet: missing"),
    "fleet run leader-ping-pong --fleet x:1": (2, "--fleet x:1: unknown model"),
    "fleet run coordinator-loss --fleet kafka-4.4:1": (2, "expected the topic of the fleet, orders"),
    "fleet run leader-ping-pong --fleet kafka-4.4:1 --capacity 0": (2, "--capacity: expected a number above 0, got 0"),
    "fleet run leader-ping-pong --fleet kafka-4.4:1 --backlog 70000": (
        2,
        "--backlog: expected an integer from 0 to 65535, got 70000",
    ),
    "fleet run leader-ping-pong --fleet kafka-4.4:1 --seeds 0": (2, "--seeds: expected an integer from 1 to 1000"),
    "fleet run leader-ping-pong --fleet kafka-4.4:50 --out /dev/null/x": (1, "--out /dev/null/x: "),
    "fleet compare a": (2, "expected at least two results, got 1"),
    "fleet compare a b": (2, "a: No such file or directory"),
    "fleet sweep --fleet kafka-4.4:50 --loads 3": (
        2,
        "--loads: expected shares of the capacity above 0, up to 2, got 3",
    ),
    "fleet sweep --fleet kafka-4.4:50 --outages x": (
        2,
        "--outages: expected numbers above 0, separated by commas, got x",
    ),
    "audit run --virtual --upstream 127.0.0.1:9092": (2, "--virtual: not with --upstream, a cluster in real time"),
    "audit run --upstream-config file": (2, "--upstream-config: needs --upstream"),
    "audit run --out text.txt": (2, "--out: 'text.txt' is a file"),
    "audit compare none none": (1, "none: cannot read the report: No such file or directory"),
    "audit compare text.txt text.txt": (1, "text.txt: expected the report.json of an audit: "),
    "config list --config none.properties": (2, "none.properties"),
    "faults list --token t\u00f6ken": (
        2,
        "--token: expected printable ASCII characters, which an HTTP header can transport",
    ),
    "healthcheck --admin ''": (2, "--admin: expected http://HOST:PORT or https://HOST:PORT, got ''"),
    "pipeline plan none.ndjson --output out": (1, "none.ndjson: no such file or folder"),
}
# Values of SLUICE_ADMIN, as for --admin.
VARIABLES = {
    "http://{kafka}": (1, KAFKA),
    "http://{closed}": (1, "http://{closed}: no connection: Connection refused. Start a broker with sluice serve"),
    "{kafka}": (2, "--admin: expected http://HOST:PORT or https://HOST:PORT, got {kafka}"),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    log: Path = tmp_path_factory.mktemp("wrong_usage") / "log"
    with (
        running_broker(log, *overrides("num.partitions=1", "sluice.journal.events=64")) as broker,
        refusing_address() as closed,
    ):
        yield {
            "admin": broker.admin,
            "web": broker.admin.removeprefix("http://"),
            "kafka": broker.bootstrap,
            "port": broker.bootstrap.rpartition(":")[2],
            "closed": closed,
            "A": f"--admin {broker.admin}",
            "B": f"--bootstrap {broker.bootstrap}",
        }


def check(words: list[str], exit_code: int, message: str, environment: dict[str, str] | None = None) -> None:
    result = CliRunner().invoke(cli, words, env=environment)
    assert (result.exit_code, result.stdout) == (exit_code, ""), result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1, "the error is one line"
    assert [part for part in message.split("...") if part not in result.stderr] == []


@pytest.mark.parametrize("usage", USAGES)
def test_error_is_one_line(usage: str, places: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    exit_code, message = USAGES[usage]
    for name, value in places.items():
        message = message.replace(f"{{{name}}}", value)
    check(shlex.split(usage.format_map(places)), exit_code, message)


@pytest.mark.parametrize("command", ["explain shop", "faults list", "healthcheck", "journal tail", "top --once"])
@pytest.mark.parametrize("address", VARIABLES)
def test_address_in_the_environment_is_checked(command: str, address: str, places: dict[str, str]) -> None:
    exit_code, message = VARIABLES[address]
    environment = {"SLUICE_ADMIN": address.format_map(places)}
    check(command.split(), exit_code, message.format_map(places), environment)

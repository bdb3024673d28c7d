"""Options and checks of the commands that simulate fleets."""

from collections.abc import Callable, Iterable
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click
from msgspec.structs import replace

from sluice.cli.commands import Integer
from sluice.cli.completion_values import scenarios_and_files
from sluice.cli.options import format_option, with_all
from sluice.errors import ConfigError, SluiceError
from sluice.text.error_text import expected

_F = TypeVar("_F", bound=Callable[..., object])

if TYPE_CHECKING:
    from sluice.broker.scenarios.model import Scenario
    from sluice.fleet.models.client_model import Group
    from sluice.fleet.simulation.broker import BrokerModel

_NEEDED = ("jinja2", "matplotlib", "numpy", "pyarrow")
FLEET = (
    "Clients, as MODEL:CLIENTS separated by commas; models: kafka-4.4 (java), kip-580-before, aiokafka, librdkafka,"
    " consumers such as java-consumer, and those of --model."
)


class Fleet(NamedTuple):
    """The fleet of a command, and the model of its brokers."""

    mix: str
    groups: "list[Group]"
    broker: "BrokerModel"


MIX = click.option("--fleet", "mix", required=True, metavar="MODEL:CLIENTS,...", help=FLEET)
SEEDS = click.option("--seeds", type=Integer(1, 1000), default=3, show_default=True, help="Number of runs.")
SCENARIO = click.argument("scenario", metavar="FILE|NAME", shell_complete=scenarios_and_files)
_MODELS = (
    click.option(
        "--broker", type=click.Choice(["kafka", "sluice"]), default="kafka", show_default=True,
        help="Broker whose measured CPU time per request is used.",
    ),
    click.option(
        "--model", "models", multiple=True, metavar="REPORT#CLIENT",
        help="Client with the backoffs that an audit measured, such as report.json#kafka-python; repeatable.",
    ),
    click.option(
        "--set", "settings", multiple=True, metavar="NAME=VALUE",
        help="Setting of all models, or of one as MODEL.NAME=VALUE, such as retry.backoff.max.ms=5000; repeatable.",
    ),
)  # fmt: skip
_BROKERS = (
    click.option(
        "--capacity", type=click.FloatRange(0, min_open=True), metavar="N",
        help="Produce requests per second that each broker can serve; other costs in proportion.",
    ),
    click.option(
        "--backlog", type=Integer(0, 65_535), default=50, show_default=True,
        help="Connections that wait until a broker accepts them (socket.listen.backlog.size).",
    ),
)  # fmt: skip


def fleet_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a fleet, which the command receives as one argument, `fleet`."""

    @wraps(command)
    def run(
        mix: str,
        capacity: float | None,
        backlog: int,
        broker: str,
        models: tuple[str, ...],
        settings: tuple[str, ...],
        **others: object,
    ) -> None:
        ensure_installed()
        from sluice.fleet.simulation.broker import BROKERS

        model = replace(BROKERS[broker], backlog=backlog)
        model = model if capacity is None else model.scaled_to(capacity)
        command(fleet=Fleet(mix, groups_of(mix, settings, models), model), **others)

    return MIX(with_all(_BROKERS, model_options(run)))


def model_options(command: _F) -> _F:
    return with_all(_MODELS, command)


def output_options(command: click.decorators.FC) -> click.decorators.FC:
    out = click.option("--out", metavar="DIR", help="Folder for the report and all results.")
    return out(format_option(command))


def runs(report: Callable[[str, int, int], None]) -> Callable[[int, int], None]:
    return lambda done, of: report("runs", done, of)


def folder(out: str) -> Path:
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SluiceError(f"--out {out}: {error.strerror}") from None
    return folder


def numbers(option: str, text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < number < 1e6 for number in found):
        raise ConfigError(f"{option}: {expected('numbers above 0, separated by commas', text)}")
    return found


def groups_of(mix: str, settings: tuple[str, ...], models: tuple[str, ...]) -> "list[Group]":
    from sluice.fleet.models.mix import parse_mix

    return parse_mix(mix, settings, models)


def load(scenario: str) -> "Scenario":
    from sluice.broker.scenarios import files

    return files.load(scenario)


def ensure_installed() -> None:
    for module in _NEEDED:
        if find_spec(module) is None:
            raise SluiceError(f"{module} is not installed; run pip install 'kafka-sluice[fleet]'")


def print_caveats(models: Iterable[str]) -> None:
    from sluice.fleet.models.presets import caveats

    for caveat in caveats(models):
        click.echo(f"Model {caveat}.", err=True)


def exit_if_interrupted(done: int, of: int, what: str) -> None:
    if done < of:
        raise SluiceError(f"interrupted: {done} of {of} {what} are in the results")

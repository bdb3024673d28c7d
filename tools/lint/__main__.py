"""Run the lint matrix: `python -m tools.lint plants`, `defaults`, or `all`, which writes docs/lint-matrix.md."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tools.docs.results.lint_matrix import write_page
from tools.lint.clients import BY_NAME
from tools.lint.explained import unexplained
from tools.lint.plants import all_plants
from tools.lint.verdicts import Reported, Verdict, judge_defaults, judge_plants, rate

TARGET = 0.98

client_option = click.option("--client", "clients", multiple=True, type=click.Choice(tuple(BY_NAME)))
seeds_option = click.option("--seeds", type=int, default=5, show_default=True, help="Runs of each cell.")
most_option = click.option(
    "--most", type=int, default=len(BY_NAME), show_default=True, help="Number of clients per rule."
)
journals_option = click.option(
    "--journals", type=click.Path(path_type=Path), help="Folder for the journals of the clients with their defaults."
)


@click.group()
def main() -> None:
    """Judge real clients by sluice lint."""
    logging.disable()  # clients that are left open, or fail, on purpose


@main.command()
@client_option
@click.option("--rule", "rules", multiple=True)
@seeds_option
@most_option
def plants(clients: Sequence[str], rules: Sequence[str], seeds: int, most: int) -> None:
    """Plant misconfigurations, and remedy them."""
    verdicts = _plants(clients or tuple(BY_NAME), rules, seeds, most)
    sys.exit(rate(verdicts) < TARGET)


@main.command()
@client_option
@journals_option
def defaults(clients: Sequence[str], journals: Path | None) -> None:
    """Run clients with their defaults."""
    found = _defaults(clients or tuple(BY_NAME), journals)
    sys.exit(bool(unexplained(found)))


@main.command(name="all")
@seeds_option
@most_option
def everything(seeds: int, most: int) -> None:
    """Run both, and write docs/lint-matrix.md."""
    verdicts = _plants(tuple(BY_NAME), (), seeds, most)
    found = _defaults(tuple(BY_NAME), None)
    write_page(verdicts, found)
    sys.exit(rate(verdicts) < TARGET or bool(unexplained(found)))


def _plants(clients: Sequence[str], rules: Sequence[str], seeds: int, most: int) -> list[Verdict]:
    chosen = [each for each in all_plants() if not rules or each.rule in rules]
    verdicts = []
    for each in judge_plants(chosen, clients, most, range(1, seeds + 1)):
        verdicts.append(each)
        if not each.passes:
            _show(each)
    click.echo(f"{sum(each.passes for each in verdicts)} of {len(verdicts)} plants were found, named and remedied")
    return verdicts


def _show(verdict: Verdict) -> None:
    click.echo(
        f"{verdict.rule}, {verdict.client}, seed {verdict.seed}:"
        + ("" if verdict.is_found else " not found")
        + ("" if verdict.is_gone else " not gone with the remedy")
        + (f", other errors: {', '.join(verdict.others)}" if verdict.others else "")
        + "".join(f"\n  {problem.strip().splitlines()[-1]}" for problem in verdict.problems)
    )


def _defaults(clients: Sequence[str], journals: Path | None) -> list[Reported]:
    found = [each for reports in judge_defaults(clients, journals) for each in reports]
    for each in unexplained(found):
        click.echo(f"{each.client}, {each.scene}: {each.rule}: {each.text}")
    click.echo(f"{len(found)} findings about clients with their defaults, {len(unexplained(found))} without a reason")
    return found


if __name__ == "__main__":
    main(prog_name="python -m tools.lint")

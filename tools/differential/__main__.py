"""Compare sluice with Apache Kafka 4.4, which this starts (campaign `differential`)."""

import sys
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path

import click

from tests.support.apache_kafka import BUILD, why_not
from tools.clients.build import BUILDS, build_one
from tools.differential import answers
from tools.differential.brokers import apache_kafka, sluice
from tools.differential.case import CASES, Case, by_layout, load_cases
from tools.differential.cases import generated


@click.command()
@click.argument("patterns", nargs=-1)
@click.option("--write", is_flag=True, help="Write Kafka's answers to tools/differential/answers.")
@click.option("--seeds", nargs=2, type=int, help="Run new generated histories instead: those from seed A to before B.")
def main(patterns: tuple[str, ...], write: bool, seeds: tuple[int, int] | None) -> None:
    """Run the cases whose names match one of PATTERNS (such as 'reserved_names: *'), or all."""
    if write and seeds is not None:
        raise click.UsageError("--write excludes --seeds: answers to new histories are not kept")
    if why_not() is not None:
        (build,) = (build for build in BUILDS if build.client == BUILD)
        click.echo(f"{BUILD}: {build_one(build)}", err=True)
    if (reason := why_not()) is not None:
        raise click.ClickException(f"Apache Kafka cannot be started: {reason}")
    cases = [
        case
        for name, case in (load_cases() if seeds is None else _histories(*seeds)).items()
        if not patterns or any(fnmatchcase(name, each) for each in patterns)
    ]
    failed = sum(
        _compare(layout_cases, write=write, are_new=seeds is not None) for layout_cases in by_layout(cases).values()
    )
    click.echo(f"{len(cases) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def _histories(first: int, end: int) -> dict[str, Case]:
    """Make the histories of these seeds whose answers are not recorded."""
    known = set(load_cases())
    for seed in range(first, end):
        for kind in generated.KINDS:
            if (kind, seed) not in generated.RECORDED:
                generated.make_case(kind, seed)
    return {name: case for name, case in CASES.items() if name not in known}


def _compare(cases: list[Case], *, write: bool, are_new: bool) -> int:
    layout = cases[0].layout
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        kafka_folder, sluice_folder = Path(folder, "kafka"), Path(folder, "sluice")
        kafka_folder.mkdir()
        sluice_folder.mkdir()
        with apache_kafka(layout, kafka_folder) as kafka, sluice(layout, sluice_folder, on_disk=True) as ours:
            for case in cases:
                expected = answers.play(case, kafka)
                if write:
                    answers.write(case.module, answers.read(case.module) | {case.name: expected})
                actual, requests = answers.play_with_requests(case, ours)
                lines = answers.unexplained(case, expected, actual)
                steps = dict.fromkeys(int(number) for line in lines if (number := line.split()[0]).isdigit())
                lines += [f"{step} {requests[step]}" for step in steps if step < len(requests)]
                if not are_new:
                    lines += answers.needless(case, expected, actual)
                    if expected != answers.read(case.module).get(case.name):
                        lines.append("Kafka's answers are not those in tools/differential/answers; run it with --write")
                failed += bool(lines)
                click.echo(f"{'FAILED' if lines else 'passed'} {case.name}")
                for line in lines:
                    click.echo(f"    {line}")
    return failed


if __name__ == "__main__":
    main()

"""The answers of Apache Kafka, one file per module of cases: one line per case and per answer."""

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sluice.protocol.message import Message
from tools.differential.case import Case
from tools.differential.session import RunningCluster, Session, compare

FOLDER = Path(__file__).with_name("answers")
Answers = list[list[Any]]


def file_of(module: str) -> Path:
    return FOLDER / f"{module}.json"


def read(module: str) -> dict[str, Answers]:
    """Return the answers of each case of a module."""
    file = file_of(module)
    return json.loads(file.read_text()) if file.exists() else {}


def write(module: str, answers: dict[str, Answers]) -> None:
    """Write the answers of a module, with one line for each."""
    cases = (
        f"{json.dumps(name)}: [\n" + ",\n".join(f"  {json.dumps(each)}" for each in kept) + "\n]"
        for name, kept in sorted(answers.items())
    )
    FOLDER.mkdir(exist_ok=True)
    file_of(module).write_text("{\n" + ",\n".join(cases) + "\n}\n")


def play(case: Case, cluster: RunningCluster) -> Answers:
    """Return the answers of a cluster, as they would be read from a file."""
    answers, _ = play_with_requests(case, cluster)
    return answers


def play_with_requests(case: Case, cluster: RunningCluster) -> tuple[Answers, list[Message | None]]:
    session = Session(cluster)
    try:
        case.steps(session)
    finally:
        session.close()
    return json.loads(json.dumps(session.answers)), session.requests


def unexplained(case: Case, expected: Answers, actual: Answers) -> list[str]:
    """Return the differences without a reason, one line each."""
    return [
        f"{path}: Kafka answered {json.dumps(one)}, sluice {json.dumps(other)}"
        for path, one, other in compare(expected, actual)
        if not any(fnmatchcase(path, pattern) for pattern in case.explained)
    ]


def needless(case: Case, expected: Answers, actual: Answers) -> list[str]:
    """Return the reasons without a difference, one line each."""
    paths = [path for path, _, _ in compare(expected, actual)]
    return [
        f"{pattern}: no difference here; remove the explanation"
        for pattern in case.explained
        if not any(fnmatchcase(path, pattern) for path in paths)
    ]

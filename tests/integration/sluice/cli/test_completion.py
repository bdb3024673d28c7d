"""Shell completion in bash."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import sluice.cli.completion  # registers its class for bash
from sluice.cli.main import cli
from tests.support import skips

# Per word: the preceding words as bash splits them, and the expected completions.
CASES: dict[str, tuple[list[str], list[str]]] = {
    "commands": (["sluice", "jour"], ["journal"]),
    "commands of a group": (["sluice", "journal", ""], ["export", "tail"]),
    "options": (["sluice", "journal", "tail", "--fo"], ["--follow", "--format"]),
    "choices": (["sluice", "serve", "--as", "kafka-0"], ["kafka-0.9", "kafka-0.10.2"]),
    "scenarios": (["sluice", "run", "rolling"], ["rolling-restart"]),
    "APIs": (["sluice", "journal", "tail", "--api", "Prod"], ["Produce"]),
    "actions": (["sluice", "faults", "add", "action", "=", "black"], ["black-hole"]),
    "all actions with this prefix": (["sluice", "faults", "add", "action", "=", "disk"], ["disk-full"]),
    "fields of a rule": (["sluice", "faults", "add", "action", "=", "delay", "clien"], ["client_id="]),
    "fields of an action": (["sluice", "faults", "add", "action", "=", "delay", "mea"], ["mean="]),
    "values of a field": (["sluice", "faults", "add", "action", "=", "delay", "api", "=", "Prod"], ["Produce"]),
    "properties": (["sluice", "serve", "--override", "quota.producer.d"], ["quota.producer.default="]),
    "quotas": (["sluice", "quota", "set", "prod"], ["producer_byte_rate="]),
    "clients to audit": (["sluice", "audit", "run", "--subject", "aio"], ["aiokafka", "aiokafka-virtual"]),
    "KIPs to audit": (["sluice", "audit", "run", "--probe", "KIP-91/2"], ["KIP-91/2"]),
    "shells": (["sluice", "completion", "f"], ["fish"]),
    "nothing": (["sluice", "xyz"], []),
}
# Those that differ in how bash splits them, or in its replies.
IN_BASH = ("commands of a group", "options", "values of a field", "nothing")
SCRIPT = """
source <(sluice completion bash) || exit 1
while read -r line; do
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *' ' ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _sluice_completion sluice
    echo "${COMPREPLY[*]}"
done
complete -p sluice
"""


@pytest.mark.parametrize("case", CASES)
def test_words_are_completed(case: str) -> None:
    words, expected = CASES[case]
    environment = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    environment[sluice.cli.completion.VARIABLE] = "bash_complete"
    result = CliRunner().invoke(cli, [], prog_name="sluice", env=environment)
    assert re.findall("^plain,(.*)", result.stdout, re.MULTILINE) == expected


@pytest.mark.skipif(shutil.which("bash") is None, reason=skips.program("bash", "apt-get install bash"))
def test_bash_completes() -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", SCRIPT.replace("while read -r line", "while IFS= read -r line")],
        input="".join(f"{' '.join(CASES[case][0])}\n" for case in IN_BASH),
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    *found, registered = done.stdout.splitlines()
    assert dict(zip(IN_BASH, found, strict=True)) == {case: " ".join(CASES[case][1]) for case in IN_BASH}
    assert registered == "complete -o nosort -F _sluice_completion sluice"
    assert done.stderr == ""

"""The table of campaigns names what exists, and a campaign runs with its arguments."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from tools import campaigns
from tools.campaigns import CAMPAIGNS, ROOT, TABLE, Campaign, main

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("campaign", TABLE, ids=lambda campaign: campaign.name)
def test_commands_name_existing_modules_and_tests(campaign: Campaign) -> None:
    modules = re.findall(r"python -m ([\w.]+)", campaign.commands)
    tests = re.findall(r"\btests/[\w/.]+", campaign.commands)
    assert [module for module in modules if find_spec(module) is None] == []
    assert [path for path in tests if not (ROOT / path).exists()] == []
    assert [lock for lock in campaign.locks if not (ROOT / f"requirements/{lock}.lock").is_file()] == []


def test_list_shows_each_campaign_with_its_default_arguments() -> None:
    shown = CliRunner().invoke(main, ["list"]).output
    named = [re.split(r"[ :]", line)[0] for line in shown.splitlines() if not line.startswith(" ")]
    assert named == list(CAMPAIGNS)
    assert "\nsoak [--soak-hours 24 --soak-minutes 30]: run mixed clients and faults" in shown


def test_documentation_names_campaigns_of_the_table() -> None:
    named = {name for page in DOCUMENTS for name in re.findall(r"tools/campaign\s+run\s+([\w-]+)", page.read_text())}
    assert named - {"NAME"} <= CAMPAIGNS.keys()


RUNS = {
    "default": ([], "by default\n", 0),
    "arguments replace the default": (["--option", "two words"], "--option two words\n", 0),
    "exit code of the first command that fails": (["fail"], "fail\n", 3),
}


@pytest.mark.parametrize(("arguments", "printed", "exit_code"), RUNS.values(), ids=RUNS)
def test_run_passes_arguments_and_returns_the_exit_code(
    arguments: list[str], printed: str, exit_code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    commands = f'echo "$@" > {out}\ntest "$1" != fail || exit 3\ntest "$(command -v python)" -ef .venv/bin/python'
    row = Campaign("echo", "", "", "", commands, default="by default")
    monkeypatch.setitem(campaigns.CAMPAIGNS, "soak", row)
    assert CliRunner().invoke(main, ["run", "soak", *arguments]).exit_code == exit_code
    assert out.read_text() == printed


def test_unknown_campaign_is_refused() -> None:
    result = CliRunner().invoke(main, ["run", "nothing"])
    assert result.exit_code == 2
    assert "'nothing' is not one of 'stress'" in result.output


def test_peers_reports_a_missing_harness(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = CliRunner().invoke(main, ["run", "peers"], env={"PEERS": str(tmp_path)})
    assert result.exit_code == 1
    assert capfd.readouterr().out == f"peers: no harness at {tmp_path}; set PEERS to its folder\n"

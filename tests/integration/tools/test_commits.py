"""The linter of commit messages."""

import subprocess
from pathlib import Path

import pytest

from tools import commits

BODY = "\n\nThe reason.\n"
NO_BODY = "no body; expected the reason for the change, got the subject alone"
MESSAGES = {
    "a subject of 71 characters and a body": (f"{'s' * 71}{BODY}", []),
    "a subject of 72 characters": (f"{'s' * 72}{BODY}", ["subject too long; expected at most 71 characters, got 72"]),
    "no body": ("Move the link\n", [NO_BODY]),
    "an empty body": ("Move the link\n\n \n", [NO_BODY]),
    "a merge": ("Merge branch 'a'\n", []),
}


@pytest.mark.parametrize(("message", "problems"), MESSAGES.values(), ids=MESSAGES)
def test_message_is_checked(message: str, problems: list[str]) -> None:
    assert commits.problems(message) == problems


def test_message_of_a_hook_is_checked_without_comments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text("Move the link\n\n# Please enter the commit message\n")
    assert commits.main([str(file)]) == 1
    assert capsys.readouterr().out == f"commit: {NO_BODY}\n"


def _git(folder: Path, *arguments: str) -> str:
    names = ["-c", "user.name=n", "-c", "user.email=n@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *names, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_commits_since_the_first_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _git(tmp_path, "init", "--quiet")
    hashes = []
    for message in ("Before", "Good\n\nbecause", "Bad"):
        _git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", message)
        hashes.append(_git(tmp_path, "log", "-1", "--format=%h"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commits, "FIRST", hashes[0])
    assert commits.main([]) == 1
    assert capsys.readouterr().out == f"{hashes[2]}: {NO_BODY}\n"


def test_clone_without_the_first_commit_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _git(tmp_path, "init", "--quiet")
    monkeypatch.chdir(tmp_path)
    assert commits.main([]) == 0
    assert capsys.readouterr().out.startswith("commits: not checked; ")

"""The linter of commit messages: a subject of less than 72 characters, and a body that states why.

`python -m tools.commits` checks the commits of this branch since FIRST, `python -m tools.commits FILE` the message that
Git is about to commit.
"""

import subprocess
import sys
from pathlib import Path

# Commits up to this one are not checked.
FIRST = "2d378bd3448fc89ceadb9219e77bb651d42de871"
MOST_CHARACTERS = 71


def problems(message: str) -> list[str]:
    """Return what is wrong with a message."""
    subject, _, body = message.partition("\n")
    if subject.startswith("Merge "):
        return []
    found = []
    if len(subject) > MOST_CHARACTERS:
        found.append(f"subject too long; expected at most {MOST_CHARACTERS} characters, got {len(subject)}")
    if not body.strip():
        found.append("no body; expected the reason for the change, got the subject alone")
    return found


def committed() -> dict[str, str]:
    """Return the messages of the commits since FIRST by their hash; none if FIRST is not in this clone."""
    command = ["git", "log", "-z", "--format=%h %B", f"{FIRST}..HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"commits: not checked; {FIRST} is not in this clone")
    return dict(entry.split(" ", 1) for entry in done.stdout.split("\0") if entry)


def main(arguments: list[str]) -> int:
    """Print one line for each problem; return 1 if there is any."""
    if arguments:
        lines = Path(arguments[0]).read_text(encoding="utf-8").splitlines()
        messages = {"commit": "\n".join(line for line in lines if not line.startswith("#"))}
    else:
        messages = committed()
    found = [f"{name}: {problem}" for name, message in messages.items() for problem in problems(message)]
    print("\n".join(found) or f"{len(messages)} commit messages are well-formed")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

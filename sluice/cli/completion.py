"""`sluice completion`.

The scripts are click's, except for bash, which splits words at `=`, although rules and properties are NAME=VALUE.
"""

import os

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from .commands import Command
from .main import cli

VARIABLE = "_SLUICE_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")
_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' response type value
    response=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete "$1")
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case $type in
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            plain)
                COMPREPLY+=("$value")
                [[ $value == *= ]] && compopt -o nospace 2>/dev/null ;;
        esac
    done <<< "$response"
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _Bash(BashComplete):
    source_template = _BASH

    def source(self) -> str:
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        """Join words that bash split at `=`."""
        given = split_arg_string(os.environ["COMP_WORDS"])
        number = int(os.environ["COMP_CWORD"])
        words: list[str] = []
        for word in [*given[1:number], given[number] if number < len(given) else ""]:
            if words and (word == "=" or words[-1].endswith("=")):
                words[-1] += word
            else:
                words.append(word)
        # Bash replaces only the part after `=`.
        self._taken = words[-1].partition("=")[0] + "=" if "=" in words[-1] else ""
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type},{str(item.value).removeprefix(self._taken)}"


add_completion_class(_Bash)


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print a script that completes sluice's commands, options and values in bash, zsh or fish."""
    made = get_completion_class(shell)
    assert made is not None, shell
    click.echo(made(cli, {}, "sluice", VARIABLE).source(), nl=False)

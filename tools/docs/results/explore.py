"""The pages of docs/explore: each bug of examples/explore, the failure that breaks it, and the fixed program.

`tools/campaign run explore --write` writes the failures to a file, from which these pages are written.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path

from tools.explore.examples import CLIENTS, FINDINGS, ROOT, Example, examples, findings

FOLDER = FINDINGS.parent


def pages() -> Mapping[Path, Callable[[], str]]:
    """Return the pages, and the functions that return their text."""
    by_bug = {bug: list(each) for bug, each in groupby(examples(), lambda example: example.bug)}
    found: dict[Path, Callable[[], str]] = {FOLDER / "index.md": partial(_index, by_bug)}
    return found | {_page(bug): partial(_bug_page, each) for bug, each in by_bug.items()}


def _page(bug: str) -> Path:
    return FOLDER / f"{bug.replace('_', '-')}.md"


def _title(example: Example) -> str:
    return (example.module.__doc__ or "").partition(".\n")[0]


def _index(by_bug: Mapping[str, list[Example]]) -> str:
    lines = [
        "# A gallery of bugs that a search finds",
        "",
        "Twelve classical bugs of applications, each in a naive and in a fixed program, for two clients.",
        "Read a page to recognize the bug in your code. [Explore](../explore.md) describes how they are found.",
        "",
        "| bug | runs of the search with aiokafka | with `sluice.client` |",
        "|---|---|---|",
    ]
    for bug, each in by_bug.items():
        runs = " | ".join(f"{findings()[str(example)].runs:g}" for example in each)
        lines.append(f"| [{_title(each[0])}]({_page(bug).name}) | {runs} |")
    lines += [
        "",
        "Runs are the median of several seeds, with those of the reduction. The programs are in `examples/explore`.",
        "`tools/campaign run explore` repeats the searches, and explores the fixed programs.",
    ]
    return "\n".join(lines) + "\n"


def _bug_page(of_clients: list[Example]) -> str:
    example = of_clients[0]
    file = Path(example.module.__file__ or "").relative_to(ROOT)
    _, _, text = (example.module.__doc__ or "").partition(".\n\n")
    lines = [f"# {_title(example)}", "", text.strip(), "", f"The test, in `{file}`:", "", *_code(example.test)]
    for each in of_clients:
        lines += _client(each, str(file))
    return "\n".join(lines) + "\n"


def _client(example: Example, file: str) -> Iterator[str]:
    found, client = findings()[str(example)], CLIENTS[example.client]
    naive = example.application("naive")
    yield from ("", f"## With {client}", "", "The naive program:", "")
    yield from _code(naive, *_helpers(example, naive))
    name = f"{file}::{example.test.__name__}[{naive.__name__}]"
    yield from ("", "To search for what breaks it:", "", "```sh", f"sluice explore '{name}'", "```", "")
    many = len(found.replay)
    yield f"A search finds {'this failure' if many == 1 else f'these {many} failures'}:"
    yield ""
    for number, injection in enumerate(found.schedule.injections, 1):
        yield f"{number}. {injection.sentence}."
    if found.order:
        yield f"{many + 1}. Events happen in another order (order {found.order})."
    yield from ("", "What happens then:", "", "```text", *found.steps, found.error, "```", "")
    arguments = f"replay={found.replay}"
    arguments += f", order={found.order}" if found.order else ""
    arguments += f", sizes={found.sizes}" if found.sizes else ""
    yield from ("With these arguments of its mark, the test repeats this run:", "", "```text", arguments, "```", "")
    yield from ("The fixed program, which survives it:", "", *_code(example.application("fixed")))


def _helpers(example: Example, function: Callable[..., object]) -> list[Callable[..., object]]:
    """Return the functions of the file that a program calls, except its applications."""
    names = [name for name in _names(function) if name.startswith(f"{example.client}_")]
    return [getattr(example.module, name) for name in names]


def _names(function: Callable[..., object]) -> list[str]:
    """Return the names of the functions of its file that a function uses, directly or not, each once."""
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    here = [each for each in called if inspect.isfunction(each) and each.__module__ == function.__module__]
    return list(dict.fromkeys(name for each in here for name in (each.__name__, *_names(each))))


def _code(*functions: Callable[..., object]) -> list[str]:
    return ["```py", "\n\n".join(inspect.getsource(each).rstrip("\n") + "\n" for each in functions).rstrip("\n"), "```"]

"""Mutants: modules of the tested packages with one small change each.

The changes are mutmut's. Its runner does not fit: it names functions by path (`quotas.sensor.…`), so it never activates
those of modules that are imported as `sluice.quotas.sensor`, and it omits properties, class bodies and constants.
"""

from dataclasses import dataclass
from difflib import unified_diff
from functools import cache
from pathlib import Path
from random import Random

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

ROOT = Path(__file__).parents[2]
PACKAGES = ("quotas", "purgatory", "protocol/records", "broker/log", "sluice/client")
_TEXT = m.SimpleString() | m.FormattedString() | m.ConcatenatedString()
_LOGGER = m.Name("log") | m.Name("_logger")
# Code that no test should have to assert: typing, docstrings, `repr`, texts of logs, whether the garbage collector
# tracks a class, and assertions, which are true unless there is an internal error.
_EXCLUDED: tuple[tuple[type[cst.CSTNode], m.BaseMatcherNode], ...] = (
    (cst.Annotation, m.Annotation()),
    (cst.Arg, m.Arg(keyword=m.Name("gc"))),
    (cst.Assert, m.Assert()),
    (cst.Assign, m.Assign(targets=[m.AssignTarget(target=_LOGGER | m.Name("__slots__") | m.Name("__all__"))])),
    (cst.Assign, m.Assign(value=m.Subscript(value=m.Name("Callable")))),
    (cst.Call, m.Call(func=m.Name("cast") | m.Name("NewType") | m.Name("TypeVar") | m.Attribute(value=_LOGGER))),
    (cst.Expr, m.Expr(value=_TEXT)),
    (cst.FunctionDef, m.FunctionDef(name=m.Name("__repr__"))),
    (cst.If, m.If(test=m.Name("TYPE_CHECKING"))),
)
_ERROR = m.Call(func=m.Name(m.MatchRegex(r"\w+(Error|Exception)")))


@dataclass(frozen=True)
class Mutant:
    """One change of one module; the name is valid as long as the module stays the same."""

    name: str
    path: str
    # Of the changed statement; of a compound statement, those before its body. None: it runs at import.
    lines: range | None
    source: str
    mutated: str

    @property
    def diff(self) -> str:
        before, after = (text.splitlines(keepends=True) for text in (self.source, self.mutated))
        return "".join(unified_diff(before, after, f"a/{self.path}", f"b/{self.path}", n=1))


@dataclass(frozen=True)
class _Place:
    """A node of a module, and the nodes that may replace it."""

    path: str
    index: int
    module: cst.Module
    line: int
    lines: range | None
    node: cst.CSTNode
    replacements: list[cst.CSTNode]

    def mutant(self, variant: int) -> Mutant:
        mutated = self.module.deep_replace(self.node, self.replacements[variant]).code
        name = f"{self.path}:{self.line}:{self.index}.{variant}"
        return Mutant(name, self.path, self.lines, self.module.code, mutated)


def sample(size: int, seed: int) -> list[Mutant]:
    """Return a random change at each of `size` random places, so that a call with many arguments counts once."""
    random = Random(seed)
    paths = [path.relative_to(ROOT) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    places = random.sample([place for path in paths for place in _places(str(path))], size)
    return [place.mutant(random.randrange(len(place.replacements))) for place in places]


def by_name(name: str) -> Mutant:
    path, _, number = name.split(":")
    index, variant = map(int, number.split("."))
    return _places(path)[index].mutant(variant)


@cache
def _places(path: str) -> list[_Place]:
    wrapper = MetadataWrapper(cst.parse_module((ROOT / path).read_text()))
    positions = wrapper.resolve(PositionProvider)
    found: list[_Place] = []

    def visit(node: cst.CSTNode, line: int, lines: range | None, is_error: bool) -> None:
        if any(isinstance(node, node_type) and m.matches(node, pattern) for node_type, pattern in _EXCLUDED):
            return
        # Texts of errors; one in a variable cannot be distinguished from other texts.
        is_error = is_error or isinstance(node, cst.Raise) or m.matches(node, _ERROR)
        if is_error and m.matches(node, _TEXT):
            return
        line = positions[node].start.line if node in positions else line
        body = getattr(node, "body", None)
        if lines is not None and isinstance(node, cst.SimpleStatementLine):
            lines = range(line, positions[node].end.line + 1)
        elif lines is not None and isinstance(body, cst.BaseSuite):
            lines = range(line, max(line + 1, positions[body].start.line))
        for node_type, operator in mutation_operators:
            replacements = list(operator(node)) if isinstance(node, node_type) else []
            if is_error and isinstance(node, cst.Call):
                replacements = [after for after in replacements if _texts(after) == _texts(node)]
            if replacements:
                found.append(_Place(path, len(found), wrapper.module, line, lines, node, replacements))
        for child in node.children:
            is_function_body = child is body and isinstance(node, cst.FunctionDef | cst.Lambda)
            visit(child, line, range(line, line + 1) if is_function_body else lines, is_error)

    visit(wrapper.module, 1, None, is_error=False)
    return found


def _texts(call: cst.Call) -> list[cst.BaseExpression]:
    return [argument.value for argument in call.args if m.matches(argument.value, _TEXT)]

"""One HTML file for a trace: the page (static/), its styles and the trace itself, which opens without a network.

The scripts are ES modules, some of them those of the admin port's page (sluice/web/static). A browser loads no module
from a file, so each becomes a function in one script. The policy allows this script and these styles by their hashes,
and forbids every request.
"""

import gzip
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template

import msgspec

from .model import Trace

_FOLDER = Path(__file__).parent / "static"
_SHARED = Path(__file__).parents[1] / "web" / "static"
_STYLES = ("theme.css", "trace.css")
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def render(trace: Trace) -> str:
    """Return the page of a trace."""
    style = "".join(map(_text, _STYLES))
    script = _script()
    return Template(_text("trace.html")).substitute(
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        title=escape(trace.title),
        icon="data:image/svg+xml;base64," + b64encode(_text("icon.svg").encode()).decode(),
        style=style,
        script=script,
        trace=b64encode(gzip.compress(msgspec.json.encode(trace), mtime=0)).decode(),
    )


def _text(name: str) -> str:
    file = _FOLDER / name
    return (file if file.exists() else _SHARED / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _script() -> str:
    modules: dict[str, str] = {}
    _add(modules, "main")
    return "\n".join(modules.values())


def _add(modules: dict[str, str], name: str) -> None:
    """Add a module as a function that returns its exports, after the modules that it imports."""
    text = _text(f"{name}.js")
    for _, imported in _IMPORT.findall(text):
        if imported not in modules:
            _add(modules, imported)
    body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = $\2;", text))
    modules[name] = f"const ${name} = (() => {{\n{body}return {{ {', '.join(_EXPORT.findall(text))} }};\n}})();\n"

"""Build the documentation site from docs/**/*.md and the reference pages generated from the code.

python -m tools.docs.site           (with the extra `docs`; writes build/docs/html)

docs/index.md is the landing page; the table of contents is appended to it here. A page that no section lists is in the
last section, "More", so that a new page is never missing.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tools.docs.reference.pages import reference

ROOT = Path(__file__).parents[2]
SOURCE, HTML = ROOT / "build/docs/source", ROOT / "build/docs/html"

# Section -> its pages; `*` in a pattern stands for pages that no earlier pattern listed. A section without pages is
# left out: quick starts in other languages are `how-to/from-LANGUAGE.md`.
SECTIONS = {
    "Start": ("install", "tutorial", "coming-from", "troubleshooting", "demo"),
    "How to": (
        *("recipes", "testing", "pytest", "how-to/[!f]*", "explore", "explore/*", "virtual-time"),
        *("serve", "proxy", "containers"),
    ),
    "Other languages": ("how-to/from-*",),
    "Features": (
        *("quotas", "faults", "scenarios", "fleets", "fleets/*", "journal", "trace", "clusters", "audit", "lint"),
        *("plan", "spark", "storage", "security", "acls", "page", "top"),
    ),
    "Clients": (
        *("clients", "compatibility/*", "faults-clients", "audit-matrix", "lint-matrix", "findings/*"),
        *("producer", "consumer", "streams", "conformance"),
    ),
    "Reference": ("reference/*", "topic-configs", "api", "admin-api"),
    "Explanation": ("explanation/*", "development"),
    "KIPs": ("kip-*",),
    "More": ("*",),
}


def main() -> None:
    """Lay out the sources and run Sphinx; a warning is an error."""
    shutil.rmtree(SOURCE.parent, ignore_errors=True)
    lay_out(SOURCE)
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "-b", "html"]
    result = subprocess.run([*command, str(SOURCE), str(HTML)], check=False)
    if result.returncode:
        sys.exit(result.returncode)
    print(f"docs: {HTML / 'index.html'}")


def lay_out(source: Path) -> None:
    """Create the folder that Sphinx reads."""
    shutil.copytree(ROOT / "docs", source)
    shutil.copy(ROOT / "docs/site/conf.py", source)
    shutil.copy(ROOT / "README.md", source.parent)  # the landing page includes a part of it
    shutil.copytree(ROOT / "examples", source.parent / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in reference():
        (source / "reference" / f"{name}.md").write_text(text)
    pages = sorted(str(file.relative_to(source).with_suffix("")) for file in source.glob("**/*.md"))
    pages.remove("index")
    with (source / "index.md").open("a") as index:
        index.writelines(_toctrees(pages))


def _toctrees(left: list[str]) -> Iterator[str]:
    for section, patterns in SECTIONS.items():
        pages = list(dict.fromkeys(page for pattern in patterns for page in left if fnmatchcase(page, pattern)))
        left = [page for page in left if page not in pages]
        if pages:
            listed = "\n".join(pages)
            yield f"\n```{{toctree}}\n:caption: {section}\n:maxdepth: 1\n:hidden:\n\n{listed}\n```\n"


if __name__ == "__main__":
    main()

"""The files of the page, read once, with headers that restrict it to its own files.

The policy forbids inline scripts and styles. `require-trusted-types-for` also forbids turning text into HTML.
"""

from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"
_CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",  # revalidated on each use; unchanged files return 304
}


class Asset(NamedTuple):
    content: bytes
    headers: dict[str, str]

    @property
    def etag(self) -> str:
        return self.headers["etag"]


def assets() -> dict[str, Asset]:
    return {file.name: _asset(file) for file in sorted(_FOLDER.iterdir())}


def _asset(file: Path) -> Asset:
    content = file.read_bytes()
    etag = f'"{sha256(content).hexdigest()[:32]}"'
    return Asset(content, {**_HEADERS, "content-type": _CONTENT_TYPES[file.suffix], "etag": etag})

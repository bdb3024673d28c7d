"""The files of the page: read once, served with headers that let it load nothing from elsewhere and run nothing else.

The policy allows no inline script or style and, by `require-trusted-types-for`, no text that becomes HTML: whatever a
client calls itself, it stays text.
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
    "cache-control": "no-cache",  # asked for again each time, and answered by 304 while it is the same
}


class Asset(NamedTuple):
    """A file of the page."""

    content: bytes
    headers: dict[str, str]

    @property
    def etag(self) -> str:
        return self.headers["etag"]


def assets() -> dict[str, Asset]:
    """All files, by name."""
    return {file.name: _asset(file) for file in sorted(_FOLDER.iterdir())}


def _asset(file: Path) -> Asset:
    content = file.read_bytes()
    etag = f'"{sha256(content).hexdigest()[:32]}"'
    return Asset(content, {**_HEADERS, "content-type": _CONTENT_TYPES[file.suffix], "etag": etag})

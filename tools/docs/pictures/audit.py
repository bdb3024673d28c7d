"""Take the screenshots in docs/audit of a report's page: `python -m tools.docs.pictures.audit FOLDER [CELL]`.

Each in light and dark: the first screen on a desktop; the dialog of a cell, such as `s0-KIP-580-1` for the first
client, by default the first deviation; and the last matrix on a phone.
"""

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

PICTURES = Path(__file__).parents[3] / "docs" / "audit"
_DESKTOP, _PHONE = (1400, 1250), (390, 844)
_A_DEVIATION = "a.cell:is(.violates, .differs)"
_CHROMIUM = os.environ.get("SLUICE_CHROMIUM") or shutil.which("chromium")


def take(browser: Browser, report: Path, cell: str) -> None:
    """Take all screenshots of the page; `cell` is its anchor, or ""."""
    for scheme in ("light", "dark"):
        for name, (width, height) in (("matrix", _DESKTOP), ("evidence", _DESKTOP), ("phone", _PHONE)):
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(report.absolute().as_uri())
            if name == "evidence":
                page.locator(f'a.cell[href="#{cell}"]' if cell else _A_DEVIATION).first.click()
                page.wait_for_selector("dialog[open]")
            elif name == "phone":
                page.locator("section.kip").last.evaluate("section => section.scrollIntoView()")
            page.screenshot(path=PICTURES / f"{name}-{scheme}.png")
            page.close()


if __name__ == "__main__":
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        take(browser, Path(sys.argv[1]) / "report.html", sys.argv[2] if len(sys.argv) > 2 else "")
        browser.close()

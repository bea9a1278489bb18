"""Takes the pictures of docs/pictures from a lakehouse of the bundled recording, with the Chromium that is installed."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

from PIL import Image

from jobs.answers.duckdb_views import QuestionReader
from jobs.common.places import PROJECT
from scripts.docs.recorded import RECORDING, lakehouse
from tests.dashboard.browsing import CHROMIUM, browsing
from tests.dashboard.serving import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, ViewportSize

TARGET: Final = PROJECT / "docs" / "pictures"
MOST_BYTES: Final = 150_000
"""Of a picture."""
_SCALE: Final = 1.25  # sharp also where it is shown smaller
_COLOURS: Final = 256  # more than a page has, apart from the edges of letters


_CLUSTER: Final = RECORDING.name
_GROUP: Final = "stock-sync"
"""Its longest rebalance is shown: all waited for a member that polled late."""
_DRAWN: Final = "main[data-drawn][aria-busy=false]"
"""A page of the dashboard, once it is complete."""


class Picture(NamedTuple):
    """A picture of a part of a page."""

    name: str  # of the file
    page: str  # a key of `addresses`
    part: str  # a selector of Playwright: its first match is taken
    width: int  # of the window, in CSS pixels
    height: int = 10_000  # of the part at most
    ready: str = "body"  # a selector of what is there once the page is complete


PICTURES: Final = (
    Picture("glance", "glance", "body", 1240, 740, _DRAWN),
    Picture("overview", "report", "main", 1060, 600, _DRAWN),
    Picture("group", "group", "main", 1240, 725, _DRAWN),
    Picture("rebalance", "rebalance", "main", 1240, 655, _DRAWN),
)


@contextmanager
def addresses(lakehouse: Path) -> Iterator[dict[str, str]]:
    """The pages of a lakehouse, until the block ends: name and address."""
    command = [sys.executable, "-m", "jobs.cli", "report", "--lakehouse", str(lakehouse), "--format", "html", "--input", str(RECORDING)]
    with tempfile.TemporaryDirectory(prefix="pages-") as folder, serving(lakehouse) as served:
        report = Path(folder) / "report.html"
        report.write_bytes(subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.PIPE).stdout)
        of = {"cluster": _CLUSTER, "group": _GROUP}
        group, rebalance = urlencode(of), urlencode(of | {"id": _longest(lakehouse)})
        yield {
            "report": report.as_uri(),
            "glance": f"{served.url}/",
            "group": f"{served.url}/group?{group}",
            "rebalance": f"{served.url}/rebalance?{rebalance}",
        }


def _longest(lakehouse: Path) -> str:
    """The id of the longest rebalance of the group that is shown."""
    query = "SELECT r.id FROM rebalances_with_id AS r WHERE r.group_id = $group ORDER BY r.total_ms DESC NULLS LAST, r.id LIMIT 1"
    return str(QuestionReader(lakehouse).ask(query, {"group": _GROUP}).rows[0][0])


def take(lakehouse: Path) -> dict[str, bytes]:
    """All pictures, by name. SystemExit: no Chromium is installed."""
    if CHROMIUM is None:
        sys.exit("no Chromium is installed: install the package `chromium-headless-shell`")
    with addresses(lakehouse) as pages, browsing() as browser:
        return {picture.name: _taken(browser, picture, pages[picture.page]) for picture in PICTURES}


def _taken(browser: Browser, picture: Picture, address: str) -> bytes:
    window: ViewportSize = {"width": picture.width, "height": 800}
    context = browser.new_context(viewport=window, device_scale_factor=_SCALE, color_scheme="light", locale="en-GB", timezone_id="UTC")
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(picture.ready)
    part = page.locator(picture.part).first.bounding_box()
    if part is None:
        raise RuntimeError(f"{picture.name}: the page does not show {picture.part}")
    clip: FloatRect = {**part, "height": min(part["height"], picture.height)}
    image = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=clip, animations="disabled")))
    context.close()
    small = io.BytesIO()
    image.convert("RGB").quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return small.getvalue()


def main() -> int:
    """Writes the files."""
    with lakehouse() as folder:
        taken = take(folder)
    TARGET.mkdir(exist_ok=True)
    for old in TARGET.glob("*.png"):
        old.unlink()
    for picture, image in taken.items():
        (TARGET / f"{picture}.png").write_bytes(image)
        print(f"wrote {(TARGET / picture).relative_to(PROJECT)}.png, {len(image):,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Chromium, as a reader drives it: what a page logs, or asks for elsewhere, is an error."""

import shutil
from contextlib import contextmanager
from urllib.parse import urlencode, urlsplit

# The shell first: without the interface of a browser, pages take a third less processor time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
_PATIENCE_MS = 300_000  # of a machine that does much else
_ARGUMENTS = [
    "--no-sandbox",  # in a container there is no user for it, and the pages are this project's own
    "--disable-dev-shm-usage",
    "--renderer-process-limit=1",  # starting a process for each page takes a tenth of the tests' processor time
    "--disable-features=SpareRendererForSitePerProcess",
    "--disable-gpu",  # there is none, and what stands in for it takes another tenth
]
MISSING = "no Chromium is installed: the pages of the dashboard are not looked at"


@contextmanager
def browsing():
    """A browser until the block ends."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield browser
        browser.close()


class Reader:
    """A tab, and what went wrong in it."""

    def __init__(self, browser, url, **context):
        self.url = url
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(_PATIENCE_MS)
        self.wrong, self.asked = [], []
        self.page.on("console", lambda message: self.wrong.append(message.text) if message.type in {"error", "warning"} else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, path, **values):
        """Opens a page and waits until it is drawn."""
        self.page.goto(self.url + path + (f"?{urlencode(values)}" if values else ""))
        return self.drawn()

    def drawn(self):
        self.page.wait_for_selector("main[data-drawn][aria-busy=false]")
        return self

    def text(self, selector="main"):
        return " ".join(self.page.inner_text(selector).split())

    def foreign(self):
        """What was asked of others."""
        return [url for url in self.asked if urlsplit(url).netloc != urlsplit(self.url).netloc]

    def close(self):
        self.context.close()
        assert self.wrong == []
        assert self.foreign() == []

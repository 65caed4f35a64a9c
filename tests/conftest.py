"""What the tests share: the pages, the built site, a browser to read it."""

from __future__ import annotations

import os
from pathlib import Path

import browser
import pytest
import sites
from page_run import page_name, pages
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "html"
SCRIPTS = pages(ROOT)
SECONDS = 15_000  # ms that a page in the browser may take to do what it is asked


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that asks for ``script`` one tutorial after the other."""
    if "script" in metafunc.fixturenames:
        metafunc.parametrize("script", SCRIPTS, ids=map(page_name, SCRIPTS))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failed run: nobody would look why it was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and os.environ.get("CI") and reporter.stats.get("skipped"):
        reporter.write_line("CI: a skipped test fails the run", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def site() -> Path:
    """Folder of the built site, which `make test` builds before the tests."""
    assert (SITE / "index.html").exists(), "no build/html; run `make html` first"
    return SITE


@pytest.fixture
def one_page(tmp_path):
    """Build a site of one page beside a file; gives HTML, warnings, drawn figures."""

    def build(
        extension: str, markup: str, file: str, content: str | None
    ) -> tuple[str, str, dict[str, str]]:
        source, out = tmp_path / "docs", tmp_path / "out"
        source.mkdir(exist_ok=True)
        (source / "index.rst").write_text(f"Title\n=====\n\n{markup}")
        if content is not None:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(content)
        warnings = sites.build(source, out, fresh=False, extensions=[extension])
        drawn = {path.name: path.read_text() for path in out.glob("_images/*")}
        return (out / "index.html").read_text(), warnings, drawn

    return build


@pytest.fixture(scope="session")
def served(site: Path):
    """Address of the built site over http, on loopback."""
    with sites.served(site) as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    """One headless browser for all tests."""
    try:
        executable = browser.chromium()
    except browser.NoBrowserError as error:
        pytest.fail(str(error), pytrace=False)
    with sync_playwright() as playwright:
        process = playwright.chromium.launch(
            executable_path=executable, args=browser.FLAGS
        )
        yield process
        process.close()


@pytest.fixture
def tab(chromium, served):
    """A fresh profile; fails at the end if a page complained or left the site."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(SECONDS)
    page = context.new_page()
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))

    def failed(request) -> None:
        # The browser cancels what is under way, the icon say, when a test leaves the
        # page. A file that is missing or a server that is gone has another name.
        if request.failure != "net::ERR_ABORTED":
            trouble.append(f"{request.failure}: {request.url}")

    def console(message) -> None:
        if message.type in ("error", "warning"):
            trouble.append(f"{message.type}: {message.text}")

    def request(sent) -> None:
        if not sent.url.startswith((served, "file://", "data:", "blob:")):
            trouble.append(f"request to another host: {sent.url}")

    page.on("requestfailed", failed)
    page.on("console", console)
    page.on("request", request)
    yield page
    context.close()
    assert trouble == []

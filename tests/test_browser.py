"""Where the browser of the site tests comes from."""

from __future__ import annotations

import browser
import pytest


@pytest.fixture
def machine(monkeypatch):
    """A machine whose programs and installers the test decides."""

    def make(programs: set[str], working: set[str], user: int = 0) -> list[str]:
        tried: list[str] = []

        def attempt(*command: str) -> bool:
            tried.append(" ".join(command[1:]))
            works = any(word in working for word in command)
            if works and "install" in command and command[0] == "apt-get":
                programs.add("chromium")
            return works

        def which(name: str) -> str | None:
            return f"/bin/{name}" if name in programs else None

        monkeypatch.setattr(browser, "attempt", attempt)
        monkeypatch.setattr(browser.shutil, "which", which)
        monkeypatch.setattr(browser.os, "geteuid", lambda: user)
        return tried

    return make


def test_one_on_the_machine_is_taken_and_nothing_installed(machine):
    tried = machine({"google-chrome", "apt-get"}, {"update", "install"})
    assert browser.chromium() == "/bin/google-chrome"
    assert tried == []


def test_else_debian_s_where_we_may_install(machine):
    tried = machine({"apt-get"}, {"update", "install"})
    assert browser.chromium() == "/bin/chromium"
    assert tried == ["update", "install -y --no-install-recommends chromium"]


@pytest.mark.parametrize(("programs", "user"), [({"apt-get"}, 1000), (set(), 0)])
def test_else_playwright_s_own_download(machine, programs, user):
    tried = machine(programs, {"playwright"}, user)
    assert browser.chromium() is None
    assert tried == ["-m playwright install chromium"]


def test_else_one_clear_line(machine):
    machine({"apt-get"}, set())
    with pytest.raises(browser.NoBrowserError) as caught:
        browser.chromium()
    assert "\n" not in str(caught.value)
    assert "install chromium" in str(caught.value)

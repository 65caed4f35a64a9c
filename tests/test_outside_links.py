"""The links to the outside: checked in a copy, told in one issue."""

from __future__ import annotations

import json
import stat

import outside_links as links
import pytest

GH = """#!/bin/sh
echo "$@" >> "{log}"
case "$2" in
    list) cat "{open}" ;;
    create) test "$1" = label || { cat >> "{log}"; echo address; } ;;
    edit) cat >> "{log}" ;;
esac
"""


def answer(uri: str, status: str, filename: str = "index.rst", info: str = "") -> dict:
    """One line of linkcheck's output."""
    return {"uri": uri, "status": status, "filename": filename, "info": info}


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A stand-in for gh; returns a function that files and tells what was called."""
    log, number, tool = tmp_path / "log", tmp_path / "open", tmp_path / "bin" / "gh"
    tool.parent.mkdir()
    text = GH.replace("{log}", str(log)).replace("{open}", str(number))
    tool.write_text(text)
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")

    def file(report: str | None, issue: str) -> tuple[str, list[str]]:
        number.write_text(issue)
        log.write_text("")
        path = tmp_path / "build" / "links" / "report.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if report is not None:
            path.write_text(report)
        return links.file_issue(tmp_path, "the-run"), log.read_text().splitlines()

    return file


def test_the_issue_is_opened_renewed_and_closed(hub):
    done, calls = hub("- `a`\n", "")
    assert done == "opened address"
    assert [call.split()[:2] for call in calls[:3]] == [
        ["issue", "list"],
        ["label", "create"],
        ["issue", "create"],
    ]
    assert "- `a`" in calls
    done, calls = hub("- `b`\n", "7\n")
    assert done == "renewed issue 7"
    assert calls[1] == "issue edit 7 --body-file -"
    assert "- `b`" in calls
    done, calls = hub("", "7\n")
    assert done == "closed issue 7"
    assert calls[1] == "issue close 7 --comment Every link answers again: the-run"
    done, calls = hub("", "")
    assert (done, len(calls)) == ("no broken link, no issue", 1)


def test_a_check_that_did_not_end_closes_nothing(hub):
    done, calls = hub(None, "7\n")
    assert done == "renewed issue 7"
    assert "The check itself did not come to its end; see the run." in calls


def test_without_gh_there_is_one_clear_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert links.main(["--issue", "the-run"], tmp_path) == 2
    assert capsys.readouterr().err.startswith("links: gh: [Errno 2] No such file")


def test_broken_links_are_told_with_the_file_to_mend():
    found = [
        answer("https://a", "working"),
        answer("https://b", "broken", "tutorials/x/10_y.rst", "404 `Not`\nFound"),
        answer("https://c", "timeout", "tutorials/x/index.rst"),
        answer("https://d", "broken", "reference/glossary.rst", "500"),
        answer("https://e", "redirected"),
        answer("https://f", "ignored"),
    ]
    assert links.broken_lines(found) == [
        "- `docs/reference/glossary.rst`: <https://d> `500`",
        "- `tutorials/x/10_y.py`: <https://b> `404 'Not' Found`",
        "- `tutorials/x/index.rst`: <https://c> `no answer`",
    ]


@pytest.fixture
def checked(tmp_path, monkeypatch):
    """A function that checks a small repository whose links answer as told."""
    for name in ("docs/tutorials/made.rst", "docs/index.rst", "build/old", ".venv/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "conf.py").write_text("sphinx_gallery_conf = {}\n")
    seen = {}

    def check(code: int, found: list[dict] | None) -> int:
        def linkcheck(source, out):
            files = (p for p in source.rglob("*") if p.is_file())
            seen["files"] = sorted(p.relative_to(source).as_posix() for p in files)
            exec((source / "conf.py").read_text(), seen)
            if found is not None:
                lines = [json.dumps(item) + "\n" for item in found]
                (out / "output.json").write_text("".join(lines))
            return code

        monkeypatch.setattr(links, "run_linkcheck", linkcheck)
        return links.main([], tmp_path)

    check.seen, check.report = seen, tmp_path / "build" / "links" / "report.md"
    return check


def test_a_copy_is_read_and_no_tutorial_runs(checked):
    assert checked(0, [answer("https://a", "working")]) == 0
    assert checked.seen["files"] == ["conf.py", "docs/index.rst"]
    assert checked.seen["sphinx_gallery_conf"] == {"plot_gallery": False}
    assert checked.report.read_text() == ""


def test_a_broken_link_is_reported(checked, capsys):
    assert checked(1, [answer("https://a", "broken", info="404")]) == 1
    assert checked.report.read_text() == "- `docs/index.rst`: <https://a> `404`\n"
    assert "links: 1, broken: 1; see build/links/output.txt" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (2, None),
        (2, []),
        (0, []),
        (1, [answer("https://a", "working")]),
        (-9, [answer("https://a", "working")]),
        (2, [answer("https://a", "broken")]),
    ],
)
def test_a_crash_is_no_all_clear(checked, capsys, code, found):
    assert checked(code, found) == 2
    assert not checked.report.exists()
    said = "links: linkcheck failed; see build/links/sphinx.log\n"
    assert capsys.readouterr().err == said

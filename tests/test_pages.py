"""Every tutorial: ran, is on the site, is listed, keeps the frame, runs alone."""

from __future__ import annotations

import re
import textwrap
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import downloads
import nbclient
import nbformat
import pagelint
import pytest
from conftest import ROOT, SCRIPTS
from page_run import page_name
from pageparts import Page
from running import DEADLINE, run, run_quickly
from sphinx_gallery.py_source_parser import remove_config_comments


def folder_of(script: Path) -> Path:
    """Folder of the generated page and its downloads."""
    return ROOT / "docs" / "tutorials" / script.parent.name


def html_of(script: Path, site: Path) -> str:
    """The built page of a script."""
    return (site / "tutorials" / f"{page_name(script)}.html").read_text()


def test_there_are_tutorials():
    assert SCRIPTS


def test_page_keeps_the_frame(script):
    assert pagelint.lint(script) == []


def test_the_ribbon_is_the_same_everywhere():
    assert pagelint.same_ribbon(SCRIPTS) == []


def test_page_ran(script):
    cases = {
        case.get("name"): case
        for case in ET.parse(ROOT / "build/junit.xml").iter("testcase")
    }
    case = cases[page_name(script)]
    assert case.find("failure") is None
    assert float(case.get("time")) > 0


def test_page_is_on_the_site_with_its_outputs(script, site):
    html = html_of(script, site)
    assert "sphx-glr-script-out" in html
    figures = sum("fig.set_label(" in cell.code for cell in Page(script).cells)
    figures += script.read_text().count(".. learning-figure::")
    assert html.count('class="only-light"') == figures
    assert html.count('class="only-dark"') == figures


def test_page_is_in_the_tutorial_index_and_the_navigation(script, site):
    folder, stem = script.parent.name, script.stem
    index = (site / f"tutorials/{folder}/index.html").read_text()
    article = index.split('class="bd-article"')[1].split("</article>")[0]
    assert re.search(rf'href="{stem}\.html[#"]', article)
    home = (site / "tutorials/index.html").read_text()
    assert re.search(rf'href="{folder}/{stem}\.html', home)


def test_no_page_shows_a_time_an_address_or_a_path(script, site):
    html = html_of(script, site)
    text = re.sub(r"<[^>]*>", "", html)
    assert "Total running time" not in text
    assert not re.search(r"0x[0-9a-f]{8,}", text)
    assert str(ROOT) not in text


def test_no_page_shows_a_warning(script, site):
    html = html_of(script, site)
    outputs = re.findall(r"sphx-glr-script-out.*?</pre>", html, re.DOTALL)
    assert outputs
    assert [text for text in outputs if re.search(r"\w+Warning: ", text)] == []


def test_script_runs_alone(script, tmp_path):
    copy = tmp_path / script.name
    copy.write_bytes((folder_of(script) / script.name).read_bytes())
    assert copy.read_bytes() == script.read_bytes()
    ran = run(copy, tmp_path)
    place = f"tutorials/{page_name(script)}.py:{ran.line or 1}"
    assert ran.code == 0, f"{place}: run alone: {ran.error}\n{ran.stderr}"
    assert [path.name for path in tmp_path.iterdir()] == [script.name]


def test_exercise_refuses_no_answer_and_takes_the_solution(script, tmp_path):
    solution = textwrap.indent(Page(script).solution(), "    ")
    proof = (
        'if __name__ == "__main__":\n'
        "    try:\n        check(answer)\n"
        "    except AssertionError:\n        pass\n"
        '    else:\n        raise SystemExit("the untouched answer passes")\n'
        f"{solution}\n    check(answer)\n"
    )
    solved = tmp_path / script.name
    solved.write_text(f"{script.read_text()}\n\n{proof}")
    ran = run_quickly(solved, tmp_path, Page(script))
    assert ran.code == 0, ran.stderr


def test_notebook_runs_top_to_bottom(script, tmp_path):
    notebook = nbformat.read(folder_of(script) / f"{script.stem}.ipynb", as_version=4)
    assert notebook.cells[0].source.startswith("%pip install")
    assert not any(cell.get("outputs") for cell in notebook.cells)
    client = nbclient.NotebookClient(
        notebook, timeout=DEADLINE, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type != "stream" or output.name != "stderr"
    ]
    assert shown
    assert not any(output.output_type == "error" for output in shown)
    assert list(tmp_path.iterdir()) == []


def test_notebook_reads_like_a_notebook(script):
    notebook = nbformat.read(folder_of(script) / f"{script.stem}.ipynb", as_version=4)
    nbformat.validate(notebook)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert [downloads.leftovers(text) for text in texts] == [[]] * len(texts)
    assert "<details>" in "\n".join(texts)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    cells = [remove_config_comments(cell.code) for cell in Page(script).cells]
    assert code[1:] == [cell.strip("\n") for cell in cells]


def test_zip_holds_script_and_notebook(script):
    folder = folder_of(script)
    names = [f"{script.stem}.ipynb", script.name]
    with zipfile.ZipFile(folder / f"{script.stem}.zip") as archive:
        assert archive.namelist() == sorted(names)
        for name in names:
            assert archive.read(name) == (folder / name).read_bytes()
            assert archive.getinfo(name).date_time == (1980, 1, 1, 0, 0, 0)


@pytest.mark.parametrize("kind", ["python", "jupyter"])
def test_all_downloads_together(kind):
    suffix = {"python": ".py", "jupyter": ".ipynb"}[kind]
    generated = ROOT / "docs" / "tutorials"
    wanted = [f"{path.parent.name}/{path.stem}{suffix}" for path in SCRIPTS]
    with zipfile.ZipFile(generated / f"tutorials_{kind}.zip") as archive:
        assert archive.namelist() == sorted(wanted)
        for name in wanted:
            assert archive.read(name) == (generated / name).read_bytes()


def test_generated_files_are_not_committed():
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {"/docs/tutorials/", "/build/", "/.venv/"} <= set(ignored)

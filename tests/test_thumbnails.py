"""Cards show the first figure of the page that they lead to."""

from __future__ import annotations

import re

import thumbnails
from conftest import ROOT
from figures import dark_file
from page_run import page_name


def test_a_page_without_figure_in_both_modes_gets_none(tmp_path):
    folder = tmp_path / "tutorials" / "train"
    images = tmp_path / "docs" / "tutorials" / "train" / "images"
    images.mkdir(parents=True)
    folder.mkdir(parents=True)
    for stem in ("10_a", "20_b", "30_c"):
        (folder / f"{stem}.py").write_text(f'"""\n.. _tut-{stem[-1]}:\n\nTitle\n"""\n')
    light = images / "sphx_glr_10_a_001.svg"
    light.write_text("<svg/>")
    dark_file(light).write_text("<svg/>")
    (images / "sphx_glr_20_b_001.svg").write_text("<svg/>")
    assert thumbnails.first_figures(tmp_path) == {"tut-a": light}


def test_every_card_of_a_section_shows_a_figure_once_in_each_mode(site):
    figures = thumbnails.first_figures(ROOT)
    for page in site.glob("tutorials/*/index.html"):
        cards = re.split(r'<div class="sd-card ', page.read_text())[1:]
        assert cards
        for card in cards:
            (label,) = re.findall(r'href="[^"#]*#(tut-[\w-]+)"', card)
            shown = re.findall(r"sphx_glr_(\w+)_001(_dark)?\.svg", card)
            stem = re.fullmatch(r"sphx_glr_(\w+)_001", figures[label].stem)[1]
            assert shown == [(stem, ""), (stem, "_dark")]


def test_the_cards_of_a_tutorial_itself_show_none(script, site):
    html = (site / "tutorials" / f"{page_name(script)}.html").read_text()
    assert "card-figure" not in html

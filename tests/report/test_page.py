import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from banditgrad.report import Claim, Curve, Figure, Panel, Report, Table, Verdict, write_html
from report import samples

# Ends of scripts in several spellings, a comment that would swallow the real end, quotes, and a very long word.
ATTACK = (
    "</script x <!--<script </script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'> & "
    '"quoted" \u2028 ' + "long" * 60
)


class Outline(HTMLParser):
    """The tags with their attributes, and the text of each kind of element."""

    def __init__(self):
        super().__init__()
        self.tags, self.text, self.open = [], {}, []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open:
            self.text[self.open[-1]] = self.text.get(self.open[-1], "") + data


def outline(report, tmp_path):
    parser = Outline()
    parser.feed(write_html(report, tmp_path / "report.html").read_text("utf-8"))
    return parser


def charts(tmp_path):
    text = (tmp_path / "report.html").read_text("utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def hostile():
    """A report with an attack in every word of it."""
    curve = Curve(ATTACK, [1, 2], [1, np.inf], [1, 0], [1, 2])
    figure = Figure("f", ATTACK, [Panel("p", ATTACK, ATTACK, ATTACK, [curve], y_log=True, caption=ATTACK)], 1, ATTACK)
    return Report(
        ATTACK,
        ATTACK,
        [Claim(ATTACK, ATTACK, Verdict.HOLDS, figure="f")],
        [figure],
        [Table(ATTACK, [ATTACK], [[ATTACK]], ATTACK)],
        {ATTACK: ATTACK, "nested": {ATTACK: [ATTACK]}},
        {ATTACK: ATTACK},
        {ATTACK: ATTACK},
    )


def test_the_page_says_all_that_the_report_holds(tmp_path):
    report = samples.report()
    page = outline(report, tmp_path)
    words = " ".join(page.text.values())
    for claim in report.claims:
        assert claim.statement in words
        assert claim.measured in words
    assert [dict(tag[1]).get("href") for tag in page.tags if tag[0] == "a"] == ["#figure1", "#figure2"]
    verdicts = [tag[1]["class"] for tag in page.tags if tag[1].get("class", "").startswith("badge")]
    assert verdicts[4:] == ["badge yes", "badge partly", "badge no", "badge open"]
    for expected in ("49,990", "9.79", "step sizes", "Prox-SVRG", "numba", "processor", "first at 18"):
        assert expected in words


def test_nothing_is_fetched_and_no_other_script_may_run(tmp_path):
    page = outline(samples.report(), tmp_path)
    policy = next(tag[1]["content"] for tag in page.tags if tag[1].get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe")
        assert not {"src", "style", "onclick"} & set(attributes)
        assert attributes.get("href", "#").startswith("#")


def test_names_cannot_break_out(tmp_path):
    page = outline(hostile(), tmp_path)
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert page.text["h1"] == ATTACK
    assert page.text["h3"] == ATTACK
    assert charts(tmp_path)[0]["curves"][0]["name"] == ATTACK


def test_numbers_in_the_page(tmp_path):
    x = np.arange(4)
    curves = [
        Curve("a", x, [1, np.nan, np.inf, 123456.789], [-np.inf, 0, 1, 2], [1, 2, 3, 1e305]),
        Curve("b", x, [1, 2, 3, 4]),
    ]
    write_html(Report("r", figures=[Figure("f", "t", [Panel("p", "t", "x", "y", curves)])]), tmp_path / "report.html")
    panel = charts(tmp_path)[0]["panels"][0]
    assert panel["grids"] == [[0, 1, 2, 3]]
    assert panel["curves"] == [
        {"id": 0, "grid": 0, "median": [1, None, "inf", 123457], "low": ["-inf", 0, 1, 2], "high": [1, 2, 3, "inf"]},
        {"id": 1, "grid": 0, "median": [1, 2, 3, 4]},
    ]


def test_an_empty_report_and_names_that_are_not_unicode(tmp_path):
    page = outline(Report("file \udcff.csv"), tmp_path)
    assert page.text["h1"] == "file ?.csv"
    assert "h2" not in page.text


def test_the_same_bytes_again_and_no_half_files(tmp_path):
    first = write_html(samples.report(), tmp_path / "sub" / "a.html").read_bytes()
    assert write_html(samples.report(), tmp_path / "sub" / "a.html").read_bytes() == first
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(OSError, match=r"folder\.html"):
        write_html(samples.report(), tmp_path / "folder.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.html", "sub"]
    assert [path.name for path in (tmp_path / "sub").iterdir()] == ["a.html"]

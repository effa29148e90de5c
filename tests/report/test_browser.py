"""The page as a reader meets it: opened from disk in Chromium."""

import os
import re
import shutil

import pytest

from banditgrad.report import Report, write_html
from report import samples
from report.test_page import hostile

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

# For each path of a chart that should be drawn: its class, its length and its box beside the chart's.
GEOMETRY = """() => [...document.querySelectorAll(".chart > svg")].map((picture) => ({
    size: [picture.viewBox.baseVal.width, picture.viewBox.baseVal.height],
    paths: [...picture.querySelectorAll(".line, .band, .lost")].map((path) => {
        const { x, y, width, height } = path.getBBox();
        return { kind: path.getAttribute("class"), length: path.getTotalLength(), box: [x, y, x + width, y + height] };
    }),
}))"""


def wait_until(page, condition):
    """Asked from here: a wait inside the page would evaluate strings, which the page's own policy forbids."""
    for _ in range(300):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    pytest.fail(f"not within 30 s: {condition}")


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no browser here: install Debian's chromium, or set CHROMIUM to the path of one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, tmp_path):
    """A function that opens a report; at the end nothing may have been complained of or fetched."""
    complaints, requests, contexts = [], [], []

    def open_page(report, **settings):
        path = write_html(report, tmp_path / "report.html")
        contexts.append(browser.new_context(**{"viewport": DESKTOP} | settings))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        wait_until(page, "document.querySelectorAll('.chart').length === "
                         "document.querySelectorAll('.chart > svg').length")  # fmt: skip
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert requests == [(tmp_path / "report.html").as_uri()] * len(contexts)


def labels(chart):
    return chart.locator("text").all_text_contents()


def centre(chart):
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page, chart, dx, dy):
    x, y = centre(chart)
    page.mouse.move(x - dx / 2, y - dy / 2)
    page.mouse.down()
    page.mouse.move(x, y)
    page.mouse.move(x + dx / 2, y + dy / 2)
    page.mouse.up()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_charts_are_drawn(visit, scheme, viewport):
    page = visit(samples.report(), color_scheme=scheme, viewport=viewport)
    charts = page.evaluate(GEOMETRY)
    assert [sum(path["kind"] == "line" for path in chart["paths"]) for chart in charts] == [3, 3, 6, 3, 6, 6, 3, 6]
    assert sum(path["kind"] == "lost" for chart in charts for path in chart["paths"]) == 1
    for chart in charts:
        width, height = chart["size"]
        for path in chart["paths"]:
            left, top, right, bottom = path["box"]
            assert path["length"] > 100
            assert 0 <= left < right <= width
            assert 0 <= top <= bottom <= height
    assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    ground = [
        int(part) for part in re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))
    ]
    uniform = page.evaluate("getComputedStyle(document.querySelector('.chart .curve')).color")
    assert (max(ground) < 60, uniform) == (
        (True, "rgb(242, 242, 242)") if scheme == "dark" else (False, "rgb(0, 0, 0)")
    )


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_hovering_reads_all_curves(visit, viewport):
    report = samples.report()
    page = visit(report, viewport=viewport)
    chart = page.locator(".chart").nth(2)
    tip = chart.locator(".tip")
    assert not tip.is_visible()
    page.mouse.move(*centre(chart))
    assert tip.is_visible()
    at = int(re.match(r"passes over the data = (\d+)", tip.inner_text())[1])
    assert 12 <= at <= 16
    rows = [row.locator("td").all_inner_texts() for row in tip.locator("tr").all()]
    curves = report.figures[1].panels[0].curves
    assert [row[1] for row in rows] == [curve.name for curve in curves]
    assert float(rows[0][2]) == pytest.approx(curves[0].median[at], rel=1e-2)
    assert chart.locator(".dot").count() == 6
    box = tip.bounding_box()
    assert box["x"] >= 0
    assert box["y"] >= 0
    assert box["x"] + box["width"] <= viewport["width"]
    assert box["y"] + box["height"] <= viewport["height"]
    assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    page.mouse.move(1, 1)
    assert not tip.is_visible()


def test_a_finger_reads_and_zooms(visit):
    page = visit(samples.report(), viewport=PHONE, has_touch=True)
    chart = page.locator(".chart").nth(1)
    before = labels(chart)
    page.touchscreen.tap(*centre(chart))
    assert chart.locator(".tip").is_visible()
    x, y = centre(chart)
    touch = page.context.new_cdp_session(page)
    for kind, dx in (("touchStart", -60), ("touchMove", 0), ("touchMove", 60)):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x + dx, "y": y}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    wait_until(page, "!document.querySelectorAll('.reset')[1].hidden")
    assert labels(chart) != before


def test_a_diverged_run_is_read_as_diverged(visit):
    page = visit(samples.report())
    chart = page.locator(".chart").nth(5)
    chart.focus()
    page.keyboard.press("ArrowLeft")
    first = chart.locator(".tip tr").first.locator("td").all_inner_texts()
    assert first[1:3] == ["uniform", "diverged"]
    page.keyboard.press("ArrowLeft")
    assert chart.locator(".tip b").inner_text() == "passes over the data = 29"


def test_the_legend_switches_curves(visit):
    page = visit(samples.report())
    button = page.locator("#figure2 .legend button", has_text="uniform")
    charts = page.locator("#figure2 .chart")
    before = labels(charts.nth(3))
    assert charts.locator('[data-curve="0"]').count() == 6
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert charts.locator('[data-curve="0"]').count() == 0
    assert charts.locator('[data-curve="1"]').count() == 6
    assert page.locator('#figure1 [data-curve="0"]').count() == 2
    button.focus()
    page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "true"
    assert charts.locator('[data-curve="0"]').count() == 6
    assert labels(charts.nth(3)) == before
    for other in page.locator("#figure2 .legend button").all():
        other.click()
    assert charts.locator(".line").count() == 0
    page.mouse.move(*centre(charts.first))


@pytest.mark.parametrize(("dx", "dy", "back"), [(120, 4, "button"), (100, 90, "double click"), (100, 90, "Escape")])
def test_zooming_and_back(visit, dx, dy, back):
    page = visit(samples.report())
    chart = page.locator(".chart").nth(2)
    reset = page.locator(".panel").nth(2).locator(".reset")
    before, drawn = labels(chart), chart.locator(".line").first.get_attribute("d")
    assert not reset.is_visible()
    drag(page, chart, dx, dy)
    assert reset.is_visible()
    assert labels(chart) != before
    assert chart.locator(".line").first.get_attribute("d") != drawn
    assert all(path["length"] > 0 for path in page.evaluate(GEOMETRY)[2]["paths"])
    if back == "button":
        reset.click()
    elif back == "double click":
        page.mouse.dblclick(*centre(chart))
    else:
        chart.focus()
        page.keyboard.press("Escape")
    assert labels(chart) == before
    assert chart.locator(".line").first.get_attribute("d") == drawn
    assert not reset.is_visible()


@pytest.mark.parametrize("log", [False, True])
def test_odd_data(visit, log):
    page = visit(Report("Odd data", figures=[samples.oddities(log)]))
    keys = [panel.key for panel in samples.oddities(log).panels]
    for key, chart in zip(keys, page.evaluate(GEOMETRY), strict=True):
        width, height = chart["size"]
        for path in chart["paths"]:
            left, top, right, bottom = path["box"]
            assert (0 <= left <= right <= width, 0 <= top <= bottom <= height) == (True, True), (key, path)
    for key, chart in zip(keys, page.locator(".chart").all(), strict=True):
        assert "NaN" not in "".join(
            chart.locator("path").evaluate_all("paths => paths.map((p) => p.getAttribute('d'))")
        )
        assert len(labels(chart)) >= 4, key
        page.mouse.move(*centre(chart))
        assert chart.locator(".tip").is_visible() == (key != "none")
        drag(page, chart, 60, 60)
        drag(page, chart, 60, 4)
    count = {key: page.locator(".chart").nth(at).locator(".mark").count() for at, key in enumerate(keys)}
    assert count["one-point"] <= 2  # its mark, and the key in the tip


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_hostile_name_is_only_text(visit, viewport):
    page = visit(hostile(), viewport=viewport)
    assert page.evaluate("window.broken") is None
    assert "</script><script>" in page.locator(".legend button").inner_text()
    page.mouse.move(*centre(page.locator(".chart")))
    assert "onerror" in page.locator(".tip").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]


def test_print_is_light_and_whole(visit):
    page = visit(samples.report(), color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.legend')).position") == "static"
    assert page.pdf().startswith(b"%PDF")

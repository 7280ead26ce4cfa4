"""The page in a real browser: nothing fetched, nothing foreign run, links and folds work, it fits every screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import in_flight
import recorded
from faultlens.records.crash import ProgressMark
from faultlens.records.report_file import Report
from faultlens.report import html
from hostile import hostile

PHONE, DESK = {"width": 380, "height": 800}, {"width": 1280, "height": 900}
Opener = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opener]:
    """Opens the page of a report; any request but that for the file itself fails the test."""
    contexts, requests, problems = [], [], []

    def show(report: Report, *, viewport: dict[str, int] = DESK, scheme: str = "light") -> Any:
        path = tmp_path / "report.html"
        path.write_text(html.page(report))
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text))
        page.goto(path.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    assert {url for url in requests if not url.startswith("file://")} == set(), "the page asked for something"
    assert problems == []


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("name", [*recorded.NAMES, "in flight", "hostile"])
def test_it_fits_the_screen(opened: Opener, tmp_path: Path, name: str, viewport: dict[str, int]) -> None:
    made = {"in flight": in_flight.report(reproducer=in_flight.REPRODUCER), "hostile": hostile()}
    report = made[name] if name in made else recorded.report(name, with_sources=True)
    page = opened(report, viewport=viewport)
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    page.screenshot(path=tmp_path / f"{name}.png", full_page=name != "hostile")
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_no_script_of_hostile_content_runs(opened: Opener) -> None:
    page = opened(hostile())
    page.wait_for_timeout(200)
    assert "owned" not in page.title().partition("<img")[0]
    assert page.evaluate("document.scripts.length + document.images.length") == 0
    assert page.evaluate("[...document.links].every(link => link.getAttribute('href').startsWith('#'))")


def test_evidence_leads_to_its_facts(opened: Opener) -> None:
    page = opened(recorded.diagnosed("segv_in_custom_op"))
    assert page.inner_text("h1") == "FastGather reads table 3, which was never loaded"
    for source, section in (("registers", "#registers"), ("native stack", "#threads")):
        page.evaluate("scrollTo(0, 0)")
        page.click(f".evidence a:text-is('{source}')")
        assert page.url.endswith(section)
        box = page.locator(section).bounding_box()
        assert box is not None and 0 <= box["y"] < DESK["height"], "the facts are in sight"
    every = page.eval_on_selector_all("a", "links => links.map(link => link.hash.slice(1))")
    assert every and all(page.locator(f"[id='{anchor}']").count() == 1 for anchor in every)


def test_threads_are_folded_and_open(opened: Opener) -> None:
    page = opened(recorded.diagnosed("segv_in_custom_op"))
    crashed, other = page.locator(".thread").first, page.locator(".thread.other").first
    assert crashed.get_attribute("open") is not None
    assert other.get_attribute("open") is None
    assert not other.locator(".call").first.is_visible()
    other.locator("summary").first.click()
    assert other.locator(".call").first.is_visible()


def test_light_and_dark(opened: Opener, tmp_path: Path) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        page = opened(recorded.diagnosed("segv_in_custom_op"), scheme=scheme)
        page.screenshot(path=tmp_path / f"{scheme}.png", full_page=True)
        style = "getComputedStyle(document.body)"
        colours[scheme] = page.evaluate(f"[{style}.backgroundColor, {style}.color]")
    (light_paper, light_ink), (dark_paper, dark_ink) = colours["light"], colours["dark"]
    assert brightness(light_paper) > 0.9 > 0.3 > brightness(light_ink)
    assert brightness(dark_paper) < 0.2 < 0.7 < brightness(dark_ink)


def test_the_memory_timeline_is_drawn(opened: Opener) -> None:
    page = opened(recorded.diagnosed("segv_in_custom_op"))
    for part in ("svg .curve", "svg .death"):
        box = page.locator(part).bounding_box()
        assert box is not None and box["height"] > 50
    assert "death at 42.3 s" in page.inner_text("figure")


def test_the_op_at_fault_is_open_and_the_others_folded(opened: Opener) -> None:
    page = opened(in_flight.report())
    page.click("nav a:text-is('In TensorFlow')")
    fault, other = page.locator(".op.fault"), page.locator(".op:not(.fault)").first
    assert fault.locator("text=model/gather/FastGather").is_visible()
    assert fault.locator(".inputs tr").count() == len(in_flight.AT_FAULT.inputs)
    assert not other.locator(".inputs").is_visible()
    other.locator("summary").first.click()
    assert other.locator(".inputs").is_visible()


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("number", [1, 4, 30, 300])
def test_epochs_on_the_timeline_do_not_overlap(opened: Opener, number: int, viewport: dict[str, int]) -> None:
    found = in_flight.report()
    marks = tuple(
        ProgressMark(seconds=0.5 + 41 * index / number, kind="epoch", text=f"epoch {index + 1}")
        for index in range(number)
    )
    progress = replace(in_flight.PROGRESS, marks=marks)
    page = opened(replace(found, crash=replace(found.crash, progress=progress)), viewport=viewport)
    boxes = sorted((label.bounding_box() for label in page.locator(".ticks span").all()), key=lambda box: box["x"])
    plot = page.locator(".plot").bounding_box()
    assert boxes and plot
    assert all(left["x"] + left["width"] < right["x"] for left, right in pairwise(boxes))
    assert boxes[-1]["x"] + boxes[-1]["width"] <= plot["x"] + plot["width"]
    assert page.locator(".ticks span").first.inner_text() == "epoch 1"
    lines = [line.bounding_box()["x"] for line in page.locator("svg .epoch").all()]
    assert 1 <= len(lines) <= 40
    assert boxes[0]["x"] == pytest.approx(lines[0], abs=1.5), "a label stands at its line"


def test_a_save_is_shaded_where_it_was(opened: Opener) -> None:
    page = opened(in_flight.report())
    save, plot = page.locator("svg .save").bounding_box(), page.locator(".plot").bounding_box()
    assert save and plot
    assert (save["x"] - plot["x"]) / plot["width"] == pytest.approx(36.5 / 42.3, abs=0.02)
    assert save["height"] == pytest.approx(plot["height"], abs=2)
    assert "shaded: saving; the end came in step 1,204 (of 1,875) of epoch 4 (of 10)" in page.inner_text("figure")


def brightness(colour: str) -> float:
    """Of "rgb(1, 2, 3)", from 0 to 1."""
    numbers = [int(number) for number in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return sum(numbers) / (3 * 255)

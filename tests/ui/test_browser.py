"""The pages in a real browser: no errors, figures that go on while a run does, zoom, names from anywhere, many points.

Chromium of the system, without a window. Its scripts run under the page's own policy, under which Playwright's
`wait_for_function` cannot run a text: what is waited for is asked for again and again.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from assay.apps.cli.forms import start_settings
from assay.apps.ui.app import pages
from assay.apps.ui.guard import Guard
from assay.apps.ui.runs import Runs, id_of
from assay.apps.ui.start_form import StartSettings
from assay.record import live as live_file
from assay.record.folder import Folder
from assay.record.latency_buckets import bucket_metric
from assay.record.run_folder import RunFolder
from assay.targets.arrays.model.model_file import catalogue_names
from assay.telemetry.columns import Reading
from assay.telemetry.flight.writer import KEEP_MIN_BYTES, FlightWriter

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
pytestmark = [
    pytest.mark.skipif(not os.path.exists(CHROMIUM), reason="Chromium is not installed"),
    # Threads of the server and of the browser end with the process.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
slow = pytest.mark.slow(reason="the list and one run are tried in the browser anyway")

TOKEN = "t" * 43
WAIT_S = 60.0


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def serving(roots: list[Path], allowed: StartSettings | None = None) -> Iterator[str]:
    """A server over the runs, in a thread of this process."""
    over = threading.Event()
    served = pages(roots, over.is_set, allowed)
    start_token = served.starts.token if served.starts is not None else None
    guard = Guard(served.app, token=TOKEN, hosts=[], port=0, start_token=start_token)
    config = uvicorn.Config(guard, port=0, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    listening = config.bind_socket()
    port = listening.getsockname()[1]
    guard._hosts.add(f"127.0.0.1:{port}")
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{port}/?token={TOKEN}"
    over.set()
    server.should_exit = True
    thread.join(20)
    listening.close()
    assert not thread.is_alive()


@pytest.fixture
def address(results: Path) -> Iterator[str]:
    with serving([results, results.parent / "recording"]) as address:
        yield address


class Tab:
    """A page that was entered, and everything it complained of."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.base = address.split("?")[0]
        self.page.goto(address)
        self.until(lambda: self.page.locator("h1").count() and "Runs and recordings" in self.text)
        self.ready()

    @property
    def text(self) -> str:
        shown: str = self.page.evaluate("document.body.innerText")
        return shown

    def until(self, happened: Callable[[], object]) -> None:
        deadline = time.monotonic() + WAIT_S
        while True:
            # A page that is just left has nothing to ask.
            try:
                if happened():
                    return
            except playwright.Error:
                pass
            assert time.monotonic() < deadline, f"it did not happen: {self.text[:2000]} {self.complaints}"
            self.page.wait_for_timeout(30)

    def go(self, place: str) -> None:
        self.page.goto(f"{self.base}#/{place}")
        self.ready()

    def ready(self) -> None:
        self.until(lambda: "Reading" not in self.text and not self.page.locator("[aria-busy=true]").count())

    def plots(self) -> int:
        return self.page.locator(".uplot").count()


@pytest.fixture
def tab(browser: Browser, address: str) -> Iterator[Tab]:
    tab = Tab(browser, address)
    yield tab
    tab.context.close()
    assert tab.complaints == []


def tell(folder: Path, **changed: Any) -> None:
    """Say what a run does at this moment, as it does itself."""
    now_ns = time.time_ns()
    told: dict[str, Any] = {
        "written_utc_ns": now_ns, "part": "oltp", "what": "8 KiB random", "phase": "measuring", "left_s": 12.0,
        "done_share": None, "waiting": "", "done": 1, "errors": {"count": 0, "word": "errors"},
        "gauges": [{"name": "iops", "title": "IOPS", "unit": "iops", "value": 4321.0, "history": [4000.0, 4321.0]}],
        "times_utc_ns": [now_ns - 10**9, now_ns], "host": {"cpu_share": 0.25, "devices": []},
        "nearest": {"limit": "read.mean<=2ms", "scope": "data", "share": 0.9, "where": "now", "text": "1.80 ms",
                    "word": "met"},
        "curve": {"axis": "outstanding", "title": "IOPS", "unit": "iops", "points": []}, "points": [],
    }  # fmt: skip
    live_file.write(Folder.open(folder), told | changed)


def test_the_list_and_one_run_are_shown_without_a_complaint(tab: Tab, results: Path) -> None:
    assert {"profile", "oltp", "verify"} <= set(tab.text.split())
    assert "1 of 6 limits missed" in tab.text
    tab.go("runs")
    tab.page.get_by_label("Filter").fill("tpcc missed")
    tab.until(lambda: "0 of 3" in tab.text or "1 of 3" in tab.text)
    tab.page.get_by_label("Filter").fill("")
    tab.page.get_by_role("link", name="assay.dat in").click()
    tab.until(lambda: tab.plots() >= 2)
    assert "218 IOPS" in tab.text
    # What goes on in a run is seen while it does.
    tell(results / "profile")
    tab.until(lambda: "Going on now" in tab.text and "4,321" in tab.text)


@slow
def test_every_page_is_shown_without_a_complaint(tab: Tab, results: Path) -> None:
    for name in ("profile", "oltp", "verify"):
        run = id_of(results / name)
        for part in ("", "/points", "/time", "/bottlenecks", "/findings"):
            tab.go(f"run/{run}{part}")
            assert tab.page.locator("[role=alert]:visible").count() == 0, tab.text
    tab.go("run/none")
    assert "not there" in tab.text
    tab.complaints[:] = [text for text in tab.complaints if "404" not in text]


@slow
@pytest.mark.parametrize("width", [1400, 820, 390])
def test_no_page_is_wider_than_its_window(browser: Browser, address: str, results: Path, width: int) -> None:
    tab = Tab(browser, address, color_scheme="dark")
    tab.page.set_viewport_size({"width": width, "height": 800})
    target_id = Runs([results]).rows()[0]["target_id"]
    for place in (
        "",
        "runs",
        f"target/{target_id}",
        f"run/{id_of(results / 'oltp')}",
        f"run/{id_of(results / 'oltp')}/bottlenecks",
    ):
        tab.go(place)
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    tab.context.close()
    assert tab.complaints == []


@slow
def test_a_run_is_watched_while_it_goes_on_and_after(tab: Tab, results: Path) -> None:
    run = results / "profile"
    tell(run)
    tab.go(f"run/{id_of(run)}")
    tab.until(lambda: "4,321" in tab.text and "90 % of it" in tab.text)
    point = {"id": "p0099", "part": "oltp", "kind": "io", "name": "8 KiB random", "load": "7 outstanding", "size": 7.0,
             "figures": [{"name": "iops", "title": "IOPS", "unit": "iops", "value": 777.0, "text": "777 IOPS"}],
             "met": True, "missed": [], "ended_by": "time", "errors": 0}  # fmt: skip
    gauges = [{"name": "iops", "title": "IOPS", "unit": "iops", "value": 9876.0, "history": [9876.0]}]
    tell(run, gauges=gauges, times_utc_ns=[time.time_ns()], points=[point])
    tab.until(lambda: "9,876" in tab.text)
    tab.page.get_by_role("link", name="Points", exact=True).click()
    tab.until(lambda: "p0099" in tab.text)
    (run / live_file.NAME).unlink()
    tab.until(lambda: "Going on now" not in tab.text)


@slow
def test_a_folder_that_disappears_is_said_to_be_gone(tab: Tab, results: Path) -> None:
    tab.go(f"run/{id_of(results / 'oltp')}")
    shutil.rmtree(results / "oltp")
    tab.until(lambda: "is not there any more" in tab.text)
    tab.page.get_by_role("link", name="Runs and recordings").click()
    tab.until(lambda: "2 of 2" in tab.text)


@slow
def test_a_new_run_appears_in_the_list(tab: Tab, results: Path) -> None:
    tab.go("runs")
    shutil.copytree(results / "oltp", results / "another")
    tab.until(lambda: "another" in tab.text)


@slow
def test_a_run_of_one_point_shows_figures_histogram_and_seconds(tab: Tab, results: Path) -> None:
    tab.go(f"run/{id_of(results / 'oltp')}")
    tab.until(lambda: tab.plots() == 2)
    titles = tab.page.locator("figcaption .title").all_inner_texts()
    assert titles == ["Latency: share in each step", "NOPM over the seconds of the point"]
    assert "9,940 NOPM" in tab.page.get_by_label("The answer").inner_text()
    assert "stock level p90" in tab.text


@slow
def test_a_target_lists_its_runs_and_a_run_says_what_became_since_last_time(tab: Tab, results: Path) -> None:
    shutil.copytree(results / "profile", results / "later")
    manifest = json.loads((results / "later" / "run.json").read_text())
    manifest["started_utc_ns"] += 10**9
    manifest["run_id"] = "later"
    (results / "later" / "run.json").write_text(json.dumps(manifest))
    target_id = next(row["target_id"] for row in Runs([results]).rows() if row["name"] == "later")
    tab.until(lambda: tab.page.locator(".spark").count() == 1)
    assert "over 2 runs" in (tab.page.locator(".spark").get_attribute("aria-label") or "")
    tab.page.get_by_role("link", name="assay.dat in").click()
    tab.until(lambda: "2 runs, the newest first" in tab.text and tab.plots() >= 1)
    assert "No level changed." in tab.text
    tab.go(f"target/{target_id}/1")
    tab.until(lambda: tab.page.locator("#load").input_value() == "1")
    tab.go(f"run/{id_of(results / 'later')}")
    tab.until(lambda: "Against last time: No difference" in tab.text)


@slow
def test_folders_without_a_run_wait_and_say_what_to_run(tab: Tab, results: Path, tmp_path: Path) -> None:
    for name in ("profile", "oltp", "verify"):
        shutil.move(results / name, tmp_path / name)
    tab.until(lambda: "Nothing was measured yet" in tab.text)
    assert f"assay assess ./assay-data -o {results}" in tab.text
    # What the page tells to type is what the program takes.
    typed = [text.split() for text in tab.page.locator("main pre").all_inner_texts()]
    assert [words[1] for words in typed] == ["assess", "profile", "record"]
    assert typed[1][2].removeprefix("model:") in catalogue_names()
    assert typed[2][2] == f"{results}/recording"
    shutil.move(tmp_path / "oltp", results / "oltp")
    tab.until(lambda: "pg on testhost" in tab.text)


@slow
def test_two_runs_are_compared(tab: Tab, results: Path) -> None:
    shutil.copytree(results / "profile", results / "profile-again")
    tab.go("runs")
    tab.until(lambda: "profile-again" in tab.text)
    for name in ("profile", "profile-again"):
        tab.page.get_by_label(f"choose {name} to compare", exact=True).check()
    tab.page.get_by_role("button", name="Compare").click()
    tab.until(lambda: "No difference" in tab.text and tab.plots() >= 2)


@slow
def test_many_runs_are_laid_over_each_other(tab: Tab, results: Path) -> None:
    shutil.copytree(results / "profile", results / "profile-again")
    runs = "+".join(id_of(results / name) for name in ("profile", "profile-again", "oltp"))
    tab.go(f"many/{runs}+none+<img>")
    tab.until(lambda: "3 runs beside each other" in tab.text and tab.plots() >= 4)
    assert tab.page.get_by_role("link", name="what changed, with intervals").count() == 2


@slow
def test_a_figure_is_zoomed_by_mouse_and_by_keys(tab: Tab, results: Path) -> None:
    tab.go(f"run/{id_of(results / 'profile')}/time")
    tab.until(lambda: tab.plots() >= 2)
    whole = tab.page.locator("p[role=status]").inner_text()
    box = tab.page.locator(".u-over").first.bounding_box()
    assert box is not None
    tab.page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 50)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 50, steps=4)
    tab.page.mouse.up()
    tab.until(lambda: tab.page.locator("p[role=status]").inner_text() != whole)
    tab.ready()
    tab.page.get_by_role("button", name="Whole time").first.click()
    tab.until(lambda: tab.page.locator("p[role=status]").inner_text() == whole)
    tab.ready()
    tab.page.locator(".plot").first.focus()
    tab.page.keyboard.press("+")
    tab.until(lambda: tab.page.locator("p[role=status]").inner_text() != whole)
    tab.page.locator(".plot").first.focus()
    tab.page.keyboard.press("0")
    tab.until(lambda: tab.page.locator("p[role=status]").inner_text() == whole)


@slow
def test_what_is_seen_goes_out_as_png_csv_and_table(tab: Tab, results: Path, tmp_path: Path) -> None:
    tab.go(f"run/{id_of(results / 'profile')}")
    tab.until(lambda: tab.plots() >= 2)
    for name, begins in (("PNG", b"\x89PNG"), ("CSV", b"rate,")):
        with tab.page.expect_download() as waiting:
            tab.page.get_by_role("button", name=f"{name}: ").first.click()
        waiting.value.save_as(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)
    tab.page.get_by_role("button", name="Table: ").first.click()
    assert tab.page.locator("figure .scroll table").first.is_visible()


@slow
def test_names_from_anywhere_are_text(tab: Tab, results: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    run = results / f"{hostile} \N{RIGHT-TO-LEFT OVERRIDE}x"
    shutil.move(results / "profile", run)
    manifest = json.loads((run / "run.json").read_text())
    manifest["verdict"][0] |= {"question": hostile, "meaning": f"</td><script>alert(2)</script>{hostile}"}
    manifest["notices"] = [hostile]
    (run / "run.json").write_text(json.dumps(manifest))
    lines = [json.loads(line) for line in (run / "points.jsonl").read_text().splitlines()]
    for point in lines:
        point["part"], point["workload"]["name"] = hostile, hostile
    (run / "points.jsonl").write_text("".join(f"{json.dumps(point)}\n" for point in lines))
    tell(run, phase=hostile, what=hostile, gauges=[{"name": hostile, "title": hostile, "unit": hostile, "value": 1.0,
                                                    "history": [1.0]}])  # fmt: skip
    tab.until(lambda: "onerror" in tab.text)
    for part in ("", "/points", "/time", "/bottlenecks", "/findings"):
        tab.go(f"run/{id_of(run)}{part}")
        assert hostile in tab.text
        assert tab.page.locator("img").count() == 0


@slow
def test_ten_thousand_points_are_shown(tab: Tab, results: Path) -> None:
    run = results / "profile"
    first = json.loads((run / "points.jsonl").read_text().splitlines()[0])
    with (run / "points.jsonl").open("w") as file:
        for number in range(10_000):
            load = {"outstanding": number + 1, "queue_depth": number + 1, "workers": 1}
            file.write(json.dumps(first | {"id": f"p{number:05}", "key": f"k{number}", "load": load}) + "\n")
    tab.go(f"run/{id_of(run)}/points")
    tab.until(lambda: "1 to 100 of 10000" in tab.text)
    tab.page.get_by_role("button", name="Older").click()
    tab.until(lambda: "101 to 200 of 10000" in tab.text)
    tab.page.get_by_role("link", name="Results", exact=True).click()
    tab.until(lambda: tab.plots() >= 2)


@slow
def test_a_recording_is_shown_from_hours_down_to_a_disk(tab: Tab, results: Path) -> None:
    folder = results.parent / "recording"
    now_ns = time.time_ns() // 10**9 * 10**9
    manifest = {"parts": [], "status": "done", "recording": {"files": [], "hosts": ["h"], "notices": []}}
    RunFolder.create_at(folder, "record", manifest).close()
    with FlightWriter(folder, keep_bytes=KEEP_MIN_BYTES, host="h") as writer:
        writer.begin({"host": "h", "interval_s": "1.0", "told": "{}"})
        for second in range(-1800, 0):
            readings = [Reading(f"member{place}/disk{disk}", "busy_share", "gauge", 0.1 + 0.2 * disk)
                        for place in range(2) for disk in range(2)]  # fmt: skip
            writer.add(readings, t_ns=now_ns + second * 10**9, interval_ns=10**9, tier="storage", source="model")
        writer.commit()
        tab.until(lambda: "recording" in tab.text.split())
        tab.go(f"run/{id_of(folder)}")
        tab.until(lambda: tab.plots() == 1)
        assert "member0" in tab.page.locator(".u-legend").inner_text()
        tab.page.get_by_role("button", name="member1", exact=True).click()
        tab.until(lambda: "member1/disk0" in tab.page.locator(".u-legend").inner_text())
        tab.page.get_by_role("button", name="15 min").click()
        tab.ready()
        before = tab.page.locator("p[role=status]").inner_text()
        # What is recorded meanwhile appears by itself.
        late_ns = time.time_ns()
        writer.add([Reading("member1/disk0", "busy_share", "gauge", 0.9)], t_ns=late_ns, interval_ns=10**9,
                   tier="storage", source="model")  # fmt: skip
        writer.commit()
        tab.page.wait_for_timeout(5000)
        writer.add([Reading("member1/disk0", "busy_share", "gauge", 0.9)], t_ns=late_ns + 5 * 10**9,
                   interval_ns=10**9, tier="storage", source="model")  # fmt: skip
        writer.commit()
        tab.until(lambda: tab.page.locator("p[role=status]").inner_text() != before)


@slow
def test_a_recording_with_histograms_is_a_heat_map_and_is_judged_step_by_step(tab: Tab, results: Path) -> None:
    folder = results.parent / "recording"
    begin_s = int(time.time()) - 3600
    RunFolder.create_at(folder, "record", {"parts": [], "status": "done", "recording": {"hosts": ["h"]}}).close()
    with FlightWriter(folder, keep_bytes=KEEP_MIN_BYTES, host="h") as writer:
        writer.begin({"host": "h", "interval_s": "10.0", "told": "{}"})
        for step in range(1, 361):
            readings = [
                Reading("vda", bucket_metric("read", "device", 14), "delta", 990.0),
                Reading("vda", bucket_metric("read", "device", 30 if step > 300 else 15), "delta", 50.0),
                Reading("vda", "read_ios_count", "delta", 1040.0),
                Reading("vda", "read_latency_mean_ns", "gauge", 2e5),
                Reading("vda", "busy_share", "gauge", 0.2),
            ]
            t_ns = (begin_s + 10 * step) * 10**9
            writer.add(readings, t_ns=t_ns, interval_ns=10**10, tier="storage", source="block")
        writer.commit()
    tab.until(lambda: "recording" in tab.text.split())
    tab.go(f"run/{id_of(folder)}")
    heat = tab.page.get_by_role("img", name="Heat map of latency, vda, reads, in the device.")
    tab.until(lambda: heat.count() and heat.is_visible())
    tab.ready()
    assert "p99 of a step: in the middle" in tab.text
    heat.focus()
    tab.page.keyboard.press("End")
    tab.until(lambda: "104 I/Os per s" in tab.text)
    tab.page.locator("figure.wide").get_by_role("button", name="Table").click()
    assert tab.page.locator("figure.wide table").get_by_role("row").count() > 50
    tab.go(f"run/{id_of(folder)}/bottlenecks")
    strip = tab.page.get_by_role("region", name="Diagnosis over time")
    assert strip.get_by_role("rowheader", name="storage h disk").count() == 1
    strip.locator("td").nth(2).click()
    tab.until(lambda: "All of the time" not in tab.text)


@slow
def test_a_phase_of_one_point_is_figures_and_no_curve(tab: Tab, results: Path) -> None:
    tab.go(f"run/{id_of(results / 'verify')}")
    tab.until(lambda: "Points of" in tab.text)
    assert tab.plots() == 0
    assert tab.page.locator(".cards .value").count() >= 3


@slow
def test_the_slider_moves_the_matrix_through_time(tab: Tab, results: Path) -> None:
    tab.go(f"run/{id_of(results / 'oltp')}/bottlenecks")
    assert "All of the time" in tab.text
    tab.page.get_by_label("When").focus()
    tab.page.keyboard.press("ArrowRight")
    tab.until(lambda: "All of the time" not in tab.text)


@slow
def test_dark_and_light_are_chosen_by_hand_and_kept(tab: Tab) -> None:
    tab.go("runs")

    def paper() -> str:
        colour: str = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return colour

    before = paper()
    tab.page.get_by_role("button", name="Dark or light").click()
    changed = paper()
    assert changed != before
    tab.page.reload()
    tab.until(lambda: "3 of 3" in tab.text)
    assert paper() == changed


@slow
def test_the_keyboard_reaches_everything(tab: Tab) -> None:
    tab.go("runs")
    reached = set()
    for _ in range(20):
        tab.page.keyboard.press("Tab")
        reached.add(tab.page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert {"Skip to the content", "theme", "filter"} <= reached
    assert any(text.startswith("assay.dat in") for text in reached)


@slow
def test_a_server_that_ends_is_said_to_be_away(browser: Browser, results: Path, address: str) -> None:
    tab = Tab(browser, address)
    tab.context.set_offline(True)
    tab.page.evaluate("document.dispatchEvent(new Event('x'))")
    tab.page.route("**/*", lambda route: route.abort())
    tab.go(f"run/{id_of(results / 'oltp')}")
    tab.until(lambda: "The server does not answer" in tab.text)
    tab.context.close()


@slow
def test_a_run_is_started_after_its_plan_was_shown(browser: Browser, results: Path, tmp_path: Path) -> None:
    with serving([results], start_settings([tmp_path])) as address:
        tab = Tab(browser, address)
        tab.page.get_by_role("link", name="Start a run").click()
        tab.ready()
        tab.page.get_by_role("link", name="profile", exact=True).click()
        tab.until(lambda: "Find how much load" in tab.text)
        asked = tab.page.get_by_role("button", name="Show what it would do")
        asked.click()
        tab.until(lambda: "Target: choose a value" in tab.text)
        tab.complaints[:] = [text for text in tab.complaints if "422" not in text]
        tab.page.get_by_label("Target (required)").select_option("null:")
        tab.page.get_by_label("block", exact=True).fill("8Q")
        asked.click()
        tab.until(lambda: "unknown unit 'Q'" in tab.text)
        for name, text in (("block", "8K"), ("queue-depth", "2"), ("duration", "1s"), ("title", "<b>of the page</b>")):
            tab.page.get_by_label(name, exact=True).fill(text)
        asked.click()
        tab.until(lambda: "Nothing was written yet" in tab.text and "layout: writes 0 B" in tab.text)
        assert "assay profile --block=8K" in tab.text
        # Another value makes another plan: the one that is shown is never another's.
        tab.page.get_by_label("duration", exact=True).fill("2s")
        tab.until(lambda: not tab.page.get_by_role("button", name="Start this run").count())
        asked.click()
        tab.page.get_by_role("button", name="Start this run").click(timeout=WAIT_S * 1000)
        tab.until(lambda: tab.page.get_by_role("link", name="its page").count())
        assert len([*results.iterdir()]) == 4
        tab.page.get_by_role("link", name="its page").click()
        tab.until(lambda: "<b>of the page</b>" in tab.text)
        tab.go("start")
        tab.until(lambda: "ended with exit code 0" in tab.text)
        tab.context.close()
        assert tab.complaints == []


@slow
def test_a_page_that_may_not_start_runs_says_how_it_could(tab: Tab) -> None:
    tab.go("start")
    tab.until(lambda: "assay ui --allow-runs" in tab.text)
    assert not tab.page.get_by_role("link", name="Start a run").count()

"""The pages in a real browser: search, graph, history, keys, a phone in the dark, and markup in names."""

from __future__ import annotations

import re
import shutil
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn

from instar.lineage import Database, open_database
from instar.lineage.ids import dataset_id, namespace_id
from instar.lineage.models import DatasetRow
from instar.service.app import Service
from instar.service.pages.site import Site
from testbed.lineage import dataset, run_event
from tests.lineage import send

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

_EVIL = "<img src=x onerror=\"document.title='pwned'\">"
_CHROMIUM = shutil.which("chromium")

_RUNS_THROUGH = """() => {
  const boxes = [...document.querySelectorAll("g.node")].map((node) => {
    const { e: x, f: y } = node.transform.baseVal.consolidate().matrix;
    const { width, height } = node.querySelector("rect.box").getBBox();
    return { name: node.getAttribute("aria-label"), x, y, width, height };
  });
  const found = [];
  for (const edge of document.querySelectorAll("path.edge")) {
    for (let at = 5; at < edge.getTotalLength() - 5; at += 5) {
      const { x, y } = edge.getPointAtLength(at);
      const inside = (box) =>
        x > box.x + 2 && x < box.x + box.width - 2 && y > box.y + 2 && y < box.y + box.height - 2;
      found.push(...boxes.filter(inside));
    }
  }
  return found.map((box) => box.name);
}"""

pytestmark = pytest.mark.xdist_group("browser")


def _columns(*names: str, source: str) -> dict[str, Any]:
    made = {
        name: {"inputFields": [{"namespace": "db", "name": source, "field": name, "transformations": []}]}
        for name in names
    }
    return {"fields": made}


def _fill(database: Database) -> None:
    send(
        database,
        run_event("COMPLETE", 10, 1, job="load orders", inputs=[dataset("raw", "id int")],
                  outputs=[dataset("orders", "id int, zip string")]),
        run_event("COMPLETE", 20, 2, job="load orders", inputs=[dataset("raw", "id int")],
                  outputs=[
                      dataset("orders", "id bigint, city string", columnLineage=_columns("id", source="raw"))
                  ]),
        run_event("START", 25, 3, job="load orders"),
        run_event("FAIL", 30, 3, job="load orders"),
        run_event("COMPLETE", 40, 4, job="report", inputs=[dataset("orders"), dataset("raw")],
                  outputs=[dataset("totals", "day date, sum bigint")]),
        run_event("COMPLETE", 50, 5, job=_EVIL, inputs=[dataset("orders")],
                  outputs=[dataset(_EVIL, "a int")]),
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a small database and 10,000 more datasets."""
    database = open_database(f"sqlite:///{tmp_path_factory.mktemp('pages')}/lineage.db")
    _fill(database)
    rows = [
        {
            "uuid": (key := dataset_id("db", f"bulk_{number:05}")),
            "namespace_uuid": namespace_id("db"),
            "name": f"bulk_{number:05}",
            "type": "DB_TABLE",
            "physical_name": "",
            "root_uuid": key,
            "created_at": 0,
            "updated_at": 0,
            "is_hidden": False,
            "compatibility": "none",
            "version_count": 0,
        }
        for number in range(10_000)
    ]
    database.write(lambda connection: connection.execute(DatasetRow.__table__.insert(), rows))  # type: ignore[attr-defined]
    service = Service(database, pages=Site(database))
    server = uvicorn.Server(uvicorn.Config(service, port=0, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


def test_a_page_escapes_names_and_forbids_what_is_not_its_own(site: str) -> None:
    """Names are text: no markup of theirs reaches a page, and a browser may load nothing from elsewhere."""
    found = httpx.get(f"{site}/", params={"q": "onerror"})
    assert found.status_code == 200
    assert "&lt;img" in found.text
    assert "<img" not in found.text
    assert "default-src 'none'" in found.headers["content-security-policy"]
    bad = ("/dataset?ns=db&name=no", "/nowhere", "/static/../site.py", "/?page=x", "/?kind=x", "/?sort=x")
    for path in (*bad, "/graph.json?kind=job&ns=jobs&name=no", "/graph.json"):
        answer = httpx.get(f"{site}{path}")
        assert answer.status_code in {400, 404}, path
        assert "Traceback" not in answer.text


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Debian's Chromium, without a window."""
    if _CHROMIUM is None:
        pytest.skip("there is no chromium: install it, for example with apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Open a tab that remembers errors."""
    tab = browser.new_page(viewport={"width": 1200, "height": 900})
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    yield tab
    tab.close()
    assert problems == []


def test_people_find_datasets_among_ten_thousand_with_the_keyboard(page: Page, site: str) -> None:
    """`/` searches, j and Enter choose, and pages of results can be turned."""
    page.goto(f"{site}/?sort=latest")
    assert page.locator("#results a").first.inner_text() == _EVIL, "what was seen last is first"
    page.goto(site)
    assert "10,0" in page.inner_text("#count")
    assert page.inner_text(".tabs a[aria-current] >> nth=0").startswith("All 10,0")
    page.click("a[rel=next]")
    assert "Page 2" in page.inner_text(".pages")
    page.keyboard.press("/")
    page.keyboard.type("orders")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=orders**")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('orders')")


def test_the_graph_can_be_dragged_and_followed(page: Page, site: str) -> None:
    """A node moves with the pointer, arrow keys walk, and Enter or a click opens what it is."""
    page.goto(f"{site}/dataset?ns=db&name=orders")
    page.wait_for_selector("g.node.here")
    assert page.locator("g.node").count() >= 5
    lines = page.locator("path.edge").evaluate_all("some => some.map(one => one.getAttribute('d'))")
    ends = [re.findall(r"-?[0-9.]+", line) for line in lines]
    assert all(float(end[0]) < float(end[-2]) for end in ends), "edges go from left to right"
    assert page.evaluate(_RUNS_THROUGH) == [], "an edge that is longer than others goes around nodes"
    before = page.locator("g.node.here").get_attribute("transform")
    box = page.locator("g.node.here rect.box").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 20, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 50, steps=4)
    page.mouse.up()
    assert page.locator("g.node.here").get_attribute("transform") != before
    page.click("#fit")
    page.hover("g.node.here")
    assert page.locator("g.node:not(.lit)").count() == 0, "everything leads to it, or comes from it"
    page.hover("g.node:has-text('totals')")
    assert page.locator("g.node:not(.lit)").count() == 2, "what the report has nothing to do with"
    place = "document.querySelector('#graph svg').getAttribute('viewBox')"
    seen = page.evaluate(place)
    page.mouse.wheel(0, 10)
    assert page.evaluate(place) == seen, "the wheel scrolls the page"
    page.keyboard.down("Control")
    page.mouse.wheel(0, -10)
    page.keyboard.up("Control")
    page.wait_for_function(f"{place} !== '{seen}'")
    page.locator("g.node.here").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('load orders')")
    assert page.locator("#runs .state.failed").count() == 1
    assert page.locator("#runs .state.completed").count() == 2


def test_the_difference_of_two_schemas_says_who_would_be_fenced(page: Page, site: str) -> None:
    """What came, went and changed is coloured, and the verdict says what it means for readers."""
    page.goto(f"{site}/dataset?ns=db&name=orders")
    diff = page.inner_text("#diff")
    for word in ("city", "zip", "id", "fence"):
        assert word in diff
    assert page.locator("#diff .added").count() == 1
    assert page.locator("#diff .removed").count() == 1
    assert "raw" in page.inner_text("#columns")
    assert page.locator("#history .chip.added").all_inner_texts() == ["+ city"]
    assert page.locator("#history .chip.removed").all_inner_texts() == ["\N{MINUS SIGN} zip"]
    assert page.locator("#history .chip.changed").all_inner_texts() == ["~ id"]
    assert "report" in page.inner_text("#fenced")
    page.locator("#diff").scroll_into_view_if_needed()
    page.locator("input[name=old]").nth(0).check()
    page.locator("input[name=new]").nth(0).check()
    page.click("button:has-text('Compare')")
    assert "Nothing changed" in page.inner_text("#diff")


def test_markup_in_names_does_nothing(page: Page, site: str) -> None:
    """A name with a script in it is shown, in the page and in the graph, and never run."""
    page.goto(f"{site}/?q=onerror")
    page.locator("#results a", has_text="onerror").first.click()
    page.wait_for_selector("g.node.here")
    assert page.locator("img").count() == 0
    assert page.title().startswith("<img")  # the script would have made it another


def test_pages_fit_a_phone_in_the_dark(browser: Browser, site: str) -> None:
    """At 360 pixels nothing is wider than the screen, and a dark system gets dark pages."""
    phone = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme="dark")
    for path in ("/", "/dataset?ns=db&name=orders", "/job?ns=jobs&name=load%20orders"):
        phone.goto(site + path)
        assert phone.evaluate("document.documentElement.scrollWidth") <= 360, path
    assert phone.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
    phone.goto(f"{site}/dataset?ns=db&name=orders")
    phone.wait_for_selector("g.node.here")
    phone.close()

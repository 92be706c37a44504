"""The documentation as a site: it builds, every link in it holds, and it fetches nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.meta.modules import ROOT
from tools.site import turn_links


class Page(HTMLParser):
    """The links of a page, what it loads, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Sort out what a tag names."""
        given = {name: value for name, value in attrs if value}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif "src" in given or (tag == "link" and "href" in given):
            self.loads.append(given.get("src") or given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `./dev docs` does, where a warning is an error."""
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return place


def test_links_of_the_site_hold_and_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    """Each link leads to a page of the site and an anchor on it; scripts, styles and pictures are its own."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 25
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin at the root of whatever serves it
            continue
        assert [it for it in page.loads if re.match(r"(https?:)?//", it)] == []
        for link in page.loads + [it for it in page.links if not re.match(r"https?:|mailto:", it)]:
            target, _, anchor = link.partition("#")
            found = (path.parent / unquote(target)).resolve() if target else path
            assert found.exists(), f"{path.name}: {link}"
            if anchor and found in pages:
                assert unquote(anchor) in pages[found].anchors, f"{path.name}: {link}"


def test_every_page_can_be_reached_from_the_first(site: Path) -> None:
    """Whoever follows links from index.html comes to all of docs/, and to what has its place elsewhere."""
    reached, ahead = set[Path](), [site / "index.html"]
    while ahead:
        path = ahead.pop()
        if path in reached or path.suffix != ".html" or not path.is_relative_to(site):
            continue
        reached.add(path)
        page = Page(path.read_text(encoding="utf-8"))
        ahead += [
            (path.parent / unquote(it.partition("#")[0])).resolve() for it in page.links if ":" not in it
        ]
    names = {str(path.relative_to(site)) for path in reached}
    written = (path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md"))
    docs = {str(path.with_suffix(".html")) for path in written}
    assert docs | {"index.html", "architecture.html", "examples.html", "stories.html"} <= names


def test_links_of_readme_are_turned() -> None:
    """Folders of the repository have pages of the site."""
    assert turn_links("[a](docs/api.md#b) [c](examples) [d](https://x.org)") == (
        "[a](api.md#b) [c](examples.md) [d](https://x.org)"
    )

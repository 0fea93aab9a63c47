"""The HTML report: whole in itself, escaped, usable without a mouse; seen by a true browser."""

import http.server
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

from atlas_retry.reports import fleet_page
from atlas_retry.reports import page as page_package
from atlas_retry.reports.fleet_page import ItemRow
from atlas_retry.reports.formats import REPORTS
from tests.needs import needs
from tests.programs import found
from tests.reports.samples import FIXED, PATCH, SUBJECTS, big_run, of_run

VOID = {"meta", "link", "br", "rect"}


class Page(HTMLParser):
    """Every tag with its attributes, and all text by the innermost tag around it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def attributes(self, name: str) -> list[str]:
        return [str(attributes[name]) for _, attributes in self.tags if name in attributes]


@pytest.fixture(params=SUBJECTS)
def page(request: pytest.FixtureRequest) -> Page:
    return Page(REPORTS["html"](SUBJECTS[str(request.param)]))


def test_every_html_element_is_closed(page: Page) -> None:
    assert page.open == []


def test_the_page_loads_and_runs_nothing(page: Page) -> None:
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "img", "iframe", "object", "base"})
    assert [
        name for _, a in page.tags for name in a if name.startswith("on") or name == "src"
    ] == []
    assert all(href.startswith("#") or href == "data:," for href in page.attributes("href"))
    assert page.attributes("style") == []
    assert "default-src 'none'" in page.attributes("content")[0]
    assert "url(" not in REPORTS["html"](SUBJECTS["fixed run"])


def test_output_of_tools_and_agents_is_escaped(page: Page) -> None:
    assert "b" not in {tag for tag, a in page.tags if not a}
    escaped = [text for _, text in page.texts if "<b>&" in text]
    assert all("]]>" in text for text in escaped)


def test_the_verdict_is_the_first_heading() -> None:
    page = Page(REPORTS["html"](SUBJECTS["fixed run"]))
    headings = [tag for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == "h1"
    assert headings.count("h1") == 1
    assert ("h1", "Fixed on attempt 2") in page.texts


def test_every_internal_link_has_a_target(page: Page) -> None:
    ids = set(page.attributes("id"))
    links = [href[1:] for href in page.attributes("href") if href.startswith("#")]
    assert set(links) <= ids
    assert len(ids) == len(page.attributes("id"))


def test_scrolling_regions_can_be_reached_by_keyboard() -> None:
    page = Page(REPORTS["html"](SUBJECTS["fixed run"]))
    scrolling = [a for _, a in page.tags if "scroll" in (a.get("class") or "").split()]
    assert scrolling
    assert all(a["tabindex"] == "0" and a["role"] == "region" for a in scrolling)
    assert all(a["aria-label"] for a in scrolling)


def test_an_attempt_shows_diff_prompt_and_diagnostics() -> None:
    page = Page(REPORTS["html"](SUBJECTS["fixed run"]))
    text = "".join(text for _, text in page.texts)
    for promised in (
        "# <script>alert(1)</script>",
        "assert 2 == 3",
        "test-removed",
        "Fix this.",
        "$0.04",
        "claude-code sonnet",
        "Incompatible return value",
        "12,000 tokens in, 8,000 from the cache, 900 out",
    ):
        assert promised in text, promised
    assert ("span", "def") in page.texts


def test_a_huge_patch_is_cut_with_a_note() -> None:
    lines = "".join(f"+line {n}\n" for n in range(5000))
    head = "diff --git a/big.py b/big.py\n--- a/big.py\n+++ b/big.py\n@@ -0,0 +1,5000 @@\n"
    text = REPORTS["html"](of_run(FIXED, patches={1: head + lines}))
    assert "5000 lines not shown" in text
    assert len(text) < 100_000


def test_problems_are_grouped_by_file_and_rule_and_folded_after_twenty() -> None:
    page = Page(REPORTS["html"](of_run(big_run(attempts=1))))
    heads = [text for _, text in page.texts if text == "src/package/sub/module_0.py"]
    texts = [text for _, text in page.texts]
    assert len(heads) < 9, "one heading for the nine problems of a file"
    assert "180 more problems" in texts
    assert " 3 times" in texts


def test_the_page_draws_progress_as_curve_and_table() -> None:
    page = Page(REPORTS["html"](SUBJECTS["fixed run"]))
    (curve,) = [a["points"] for tag, a in page.tags if tag == "polyline"]
    assert curve == "20,20.0 80,60.0 140,100.0"
    cells = [a for tag, a in page.tags if tag == "td" and "title" in a]
    assert {"class": "bad", "title": "failed"} in cells


COLOUR = re.compile(r"--([\w-]+): (#\w{6})")
TEXTS = {
    *("text", "dim", "good", "bad", "warn", "link"),
    *("comment", "keyword", "string", "number", "function"),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_pair_has_enough_contrast(scheme: str) -> None:
    """Contrast as WCAG 2.2 §1.4.3 has it; the sheet takes no colour from elsewhere."""
    sheet = (files(page_package) / "templates" / "page.css").read_text(encoding="utf-8")
    schemes = re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)
    colours = dict(COLOUR.findall(schemes[scheme == "dark"]))
    assert "#" not in re.sub(r":root \{.*?\}", "", sheet, flags=re.DOTALL)
    grounds = colours.keys() - TEXTS - {"line", "agent"}
    low = {
        (text, ground): round(contrast(colours[text], colours[ground]), 2)
        for text in TEXTS
        for ground in grounds
        if contrast(colours[text], colours[ground]) < 4.5
    }
    assert low == {}


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# patches


def changed(patch: str) -> tuple[list[str], list[str | None]]:
    """The files that the page names as changed, and the class of each line of theirs."""
    page = Page(REPORTS["html"](of_run(FIXED, patches={1: patch})))
    regions = [a["aria-label"] or "" for tag, a in page.tags if tag == "div" and "aria-label" in a]
    paths = [label.removeprefix("Changes of ") for label in regions if label.startswith("Changes")]
    kinds = [a.get("class") for tag, a in page.tags if tag == "span"]
    return paths, [kind for kind in kinds if kind in {"added", "removed", "hunk"}]


def test_a_patch_is_shown_line_by_line() -> None:
    assert changed(PATCH) == (["src/sums.py"], ["hunk", "removed", "added", "added"])


BINARY = r"""diff --git a/logo.png b/logo.png
index 1..2
Binary files a/logo.png and b/logo.png differ
"""
RENAME = r"""diff --git a/old.py b/new.py
similarity index 100%
rename from old.py
rename to new.py
"""
DELETED = r"""diff --git a/x b/x
deleted file mode 100644
--- a/x
+++ /dev/null
@@ -1 +0,0 @@
-x
"""
HEADERS_INSIDE = r"""diff --git a/q.sql b/q.sql
--- a/q.sql
+++ b/q.sql
@@ -1,2 +1,2 @@
--- old
-@@ -1 +1 @@
+++ new
+@@ x
"""
QUOTED = r"""diff --git "a/caf\303\251.py" "b/caf\303\251.py"
--- "a/caf\303\251.py"
+++ "b/caf\303\251.py"
@@ -1 +1 @@
-a
+b
"""
NO_NEWLINE = r"""diff --git a/x b/x
--- a/x
+++ b/x
@@ -1 +1 @@
-a
\ No newline at end of file
+b
\ No newline at end of file
"""
ODD = {
    "binary": (BINARY, [], []),
    "rename": (RENAME, [], []),
    "deleted": (DELETED, ["x"], ["hunk", "removed"]),
    "looks like headers": (
        HEADERS_INSIDE,
        ["q.sql"],
        ["hunk", "removed", "removed", "added", "added"],
    ),
    "quoted name": (QUOTED, [r"caf\303\251.py"], ["hunk", "removed", "added"]),
    "no newline": (NO_NEWLINE, ["x"], ["hunk", "removed", "hunk", "added", "hunk"]),
    "cut short": (PATCH[: PATCH.index("return a")], ["src/sums.py"], ["hunk", "removed"]),
    "no patch": ("hello\n@@ -1 +1 @@\n", [], []),
}


@pytest.mark.parametrize(("patch", "paths", "kinds"), ODD.values(), ids=ODD.keys())
def test_unusual_git_patches_are_parsed(
    patch: str, paths: list[str], kinds: list[str | None]
) -> None:
    assert changed(patch) == (paths, kinds)


@pytest.mark.parametrize(
    ("patch", "remark"),
    [
        (BINARY, "Binary files a/logo.png and b/logo.png differ"),
        (RENAME, "rename from old.py"),
        (DELETED, "deleted file mode 100644"),
    ],
)
def test_an_unreadable_patch_is_reported(patch: str, remark: str) -> None:
    page = Page(REPORTS["html"](of_run(FIXED, patches={1: patch})))
    assert ("p", remark) in page.texts


# a browser

HARNESS = """<!doctype html><title>waiting</title>
<iframe src="/report.html" style="width:390px;height:800px"></iframe>
<script>
addEventListener("load", () => {
  const inner = document.querySelector("iframe").contentDocument;
  const style = (what) => inner.defaultView.getComputedStyle(inner.querySelector(what));
  const told = {
    overflow: inner.documentElement.scrollWidth - inner.documentElement.clientWidth,
    ground: style("body").backgroundColor,
    border: style("header").borderLeftWidth,
    height: inner.documentElement.scrollHeight,
    ran: String(Boolean(inner.defaultView.ran)),
    heading: Math.max(...[...inner.querySelectorAll("th")].map((one) => {
      const range = inner.createRange();
      range.selectNodeContents(one);
      return range.getClientRects().length;
    })),
  };
  document.body.insertAdjacentHTML("beforeend", Object.entries(told)
    .map(([name, value]) => `<p>${name}=${value};</p>`).join(""));
});
</script>
"""


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def seen(folder: Path, *options: str) -> tuple[str, list[str]]:
    chromium = found("chromium")
    assert chromium
    command = [
        chromium,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={folder / 'profile'}",
        "--window-size=800,900",
        "--dump-dom",
        *options,
    ]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    with served(folder) as (address, asked):
        done = subprocess.run(
            [*command, f"{address}/harness.html"],
            env=environment,
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
        )
    return done.stdout, asked


WIDE_ROWS = [
    ItemRow(
        name=f"a-service-with-a-name-that-is-long-{n}",
        url=f"https://git.example.com/organisation/service-{n}" if n % 2 else "",
        ending=ending,
        is_green=ending == "agent",
        cost_usd=n,
        attempts=n,
        delivered="atlas/a-branch-with-a-name-that-is-long",
        error="fatal: <b>" + "x" * 300 if n else "",
        report=f"s3://fleet/atlas/ruff-0.18/ruff-0.18-{n}-agent/run.json",
    )
    for n, ending in enumerate(["agent", "failed", "broken", "", "failed"])
]


def test_the_fleet_page_has_failures_first_and_links() -> None:
    text = fleet_page.report("ruff-0.18", WIDE_ROWS, known_usd=10.0, held_usd=0.5)
    page = Page(text)
    assert page.open == []
    headings = [a["id"] for tag, a in page.tags if tag == "section" and "id" in a]
    assert headings == ["failed", "broken", "open", "agent"]
    links = page.attributes("href")[1:]
    assert links[:4] == ["#failed", "#broken", "#open", "#agent"]
    assert "https://git.example.com/organisation/service-1" in links
    assert ("h1", "1 of 5 repositories pass") in page.texts
    assert "fatal: &lt;b&gt;" in text


@needs("chromium")
def test_the_fleet_page_fits_a_phone_without_breaking_words(tmp_path: Path) -> None:
    text = fleet_page.report("ruff-0.18", WIDE_ROWS, known_usd=10.0, held_usd=0.5)
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    (tmp_path / "harness.html").write_text(HARNESS, encoding="utf-8")
    dom, _ = seen(tmp_path)
    results = dict(re.findall(r"<p>(\w+)=([^;]*);</p>", dom))
    assert results["overflow"] == "0"
    assert results["heading"] == "1", "a heading of a column stands on one line"


@needs("chromium")
@pytest.mark.parametrize(
    ("options", "ground"),
    [
        ((), "rgb(255, 255, 255)"),
        (("--blink-settings=preferredColorScheme=0",), "rgb(20, 23, 28)"),
    ],
    ids=["light", "dark"],
)
def test_the_page_fits_a_phone_and_requests_nothing_else(
    tmp_path: Path, options: tuple[str, ...], ground: str
) -> None:
    wide = PATCH.replace("return a\n", f"return {'a' * 400}\n") * 30
    subject = of_run(big_run(), patches=dict.fromkeys(range(1, 6), wide), prompts={1: "x" * 3000})
    (tmp_path / "report.html").write_text(REPORTS["html"](subject), encoding="utf-8")
    (tmp_path / "harness.html").write_text(HARNESS, encoding="utf-8")
    dom, asked = seen(tmp_path, *options)
    results = dict(re.findall(r"<p>(\w+)=([^;]*);</p>", dom))
    assert int(results.pop("height")) < 6_000
    assert results.pop("heading") == "1"
    assert results == {"overflow": "0", "ground": ground, "border": "8px", "ran": "false"}
    assert [path for path in asked if path != "/favicon.ico"] == ["/harness.html", "/report.html"]

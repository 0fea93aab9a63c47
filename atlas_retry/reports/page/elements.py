"""HTML as a tree, so that nothing is escaped by hand."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from xml.etree import ElementTree as ET

from atlas_retry.reports.phrases import plain

Node = ET.Element | str


def tag(name: str, /, *children: Node | None, **attributes: str | None) -> ET.Element:
    """An element with its children in order, without None.

    Attributes that are Python keywords or have a dash are written `class_` and `aria_label`.
    """
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    element = ET.Element(name, {key: plain(text) for key, text in named.items() if text})
    for child in children:
        if isinstance(child, ET.Element):
            element.append(child)
        elif child and len(element):
            element[-1].tail = (element[-1].tail or "") + plain(child)
        elif child:
            element.text = (element.text or "") + plain(child)
    return element


def document(title: str, body: ET.Element) -> str:
    """A self-contained page with the style of atlas; its policy allows only that."""
    folder = files(__package__)
    style = (folder / "page.css").read_text(encoding="utf-8")
    return Template((folder / "page.html").read_text(encoding="utf-8")).substitute(
        title=escape(plain(title)),
        style=style,
        digest=b64encode(sha256(style.encode()).digest()).decode(),
        body=ET.tostring(body, encoding="unicode", method="html"),
    )


def scrollable(label: str, *children: Node | None, class_: str = "") -> ET.Element:
    """A block that scrolls sideways, also by keyboard."""
    return tag(
        "div",
        *children,
        class_=f"scroll {class_}".strip(),
        role="region",
        aria_label=label,
        tabindex="0",
    )


def foldable(title: Node, *children: Node | None, class_: str = "", unfolded: bool = False) -> Node:
    """A block that opens and closes without a script."""
    shown = "open" if unfolded else None
    return tag("details", tag("summary", title), *children, class_=class_, open=shown)


def table(
    label: str, columns: Sequence[str], rows: Iterable[Sequence[Node]], class_: str = ""
) -> Node:
    """A scrollable table; text items become cells."""
    head = tag("tr", *(tag("th", column, scope="col") for column in columns))
    body = []
    for row in rows:
        cells = (tag("td", cell) if isinstance(cell, str) else cell for cell in row)
        body.append(tag("tr", *cells))
    return scrollable(label, tag("table", head, *body), class_=class_)


def bar(value: int, longest: int) -> Node:
    """A bar as SVG: the page's policy forbids inline styles."""
    width = str(max(round(1000 * value / longest), 4) if longest else 4)
    return tag(
        "svg",
        tag("rect", width=width, height="10", rx="2"),
        viewBox="0 0 1000 10",
        preserveAspectRatio="none",
        class_="bar",
        aria_hidden="true",
    )

"""HTML as a tree, so that nothing is ever escaped by hand; it knows no page."""

from xml.etree import ElementTree as ET

from atlas_retry.reports.phrases import plain

Node = ET.Element | str


def tag(name: str, /, *children: Node | None, **attributes: str | None) -> ET.Element:
    """An element with its children in order; None is left out.

    Attribute names that are Python words or hold a dash are written `class_` and `aria_label`.
    """
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    element = ET.Element(name, {key: plain(text) for key, text in named.items() if text})
    for child in children:
        if isinstance(child, str):
            _append_text(element, plain(child))
        elif child is not None:
            element.append(child)
    return element


def _append_text(element: ET.Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


def html(root: ET.Element) -> str:
    """The document as text."""
    return "<!doctype html>\n" + ET.tostring(root, encoding="unicode", method="html") + "\n"


def scrollable(label: str, *children: Node | None, class_: str = "") -> ET.Element:
    """A block that scrolls sideways by keyboard as well."""
    return tag(
        "div",
        *children,
        class_=f"scroll {class_}".strip(),
        role="region",
        aria_label=label,
        tabindex="0",
    )


def foldable(title: Node, *children: Node | None, class_: str = "", unfolded: bool = False) -> Node:
    """A summary that opens and closes by itself, without a script."""
    shown = "open" if unfolded else None
    return tag("details", tag("summary", title), *children, class_=class_ or None, open=shown)

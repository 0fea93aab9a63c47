"""XML as a tree of the names of its elements."""

from html.parser import HTMLParser


def nested_names(text: str) -> dict[str, object]:
    """Elements and attributes by their names, as far as they can be read; no entity is resolved."""
    reader = _Names()
    reader.feed(text)
    nested: dict[str, object] = {}
    for path, values in reader.found.items():
        _put(nested, path.split("/"), values)
    return nested


class _Names(HTMLParser):
    """Elements as a tree of their names; tolerant, and resolves no entities."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.found: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.stack.append(tag)
        for key, value in attrs:
            self.found.setdefault("/".join((*self.stack, f"@{key}")), []).append(value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.stack:
            while self.stack and self.stack.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if data.strip() and self.stack:
            self.found.setdefault("/".join(self.stack), []).append(data.strip())


def _put(nested: dict[str, object], parts: list[str], values: list[str]) -> None:
    for part in parts[:-1]:
        inner = nested.setdefault(part, {})
        nested = inner if isinstance(inner, dict) else {}
    nested.setdefault(parts[-1], values)

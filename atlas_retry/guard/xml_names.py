"""XML as texts by the path of their elements."""

from html.parser import HTMLParser


def texts_by_path(text: str) -> dict[str, list[str]]:
    """Texts and attributes (`a/b`, `a/@c`) as far as they can be read; no entity is resolved."""
    reader = _Names()
    reader.feed(text)
    return reader.texts


class _Names(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.texts: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.stack.append(tag)
        for key, value in attrs:
            self.texts.setdefault("/".join((*self.stack, f"@{key}")), []).append(value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.stack:
            while self.stack and self.stack.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if data.strip() and self.stack:
            self.texts.setdefault("/".join(self.stack), []).append(data.strip())

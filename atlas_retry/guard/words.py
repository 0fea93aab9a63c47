"""Texts as words, and without what stands between them. Knows no meaning."""


def words(text: str) -> frozenset[str]:
    """The words of a text, white space between them."""
    return frozenset(text.split())


def bare(text: str) -> str:
    """A text without its white space, so that layout makes no difference."""
    return "".join(text.split())

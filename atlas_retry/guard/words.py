"""Tables of words, written as text."""


def words(text: str) -> frozenset[str]:
    """The words of a text, white space between them."""
    return frozenset(text.split())

"""Which parts of a command line make it exit with 0 whatever it finds."""

from atlas_retry.patterns import regex

_AT_THE_END = regex(r"(?:\|\|\s*(?:true|:|exit\s+0|/bin/true)|;\s*exit\s+0)\s*\)?\s*$")
"""In the middle of a line it only excuses one command."""
_FLAG = regex(
    r"""(?x)
      (?<!\S)--exit-zero\b(?!-)                             # ruff, flake8, pylint, cspell
    | (?<!\S)--exit-code[= ]0(?!\S)                         # trivy, gitleaks
    | (?<!\S)--(?:no-error-on-unmatched-pattern\s+)?no-fail(?!\S)
    | (?<!\S)-D?maven\.test\.failure\.ignore(?:=true)?(?!\S)
    """
)
_SEVERAL = regex(r"[;&|\n]")


def neutraliser(line: str) -> str:
    """The text in a shell line that makes it exit with 0 always; empty if there is none."""
    match = _AT_THE_END.search(line) or (None if _SEVERAL.search(line) else _FLAG.search(line))
    return " ".join(match[0].split()) if match else ""

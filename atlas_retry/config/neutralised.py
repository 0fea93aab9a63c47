"""Which parts of a command line make it exit with 0 whatever it finds."""

from atlas_retry.patterns import regex

NEUTRALISERS = regex(
    r"""(?x)
      \|\|\s*(?:true|:|exit\s+0|/bin/true)\s*(?=$|[;)])    # sh: at the end of the line
    | ;\s*exit\s+0\s*$
    | (?<!\S)--exit-zero\b(?!-)                             # ruff, flake8, pylint, cspell
    | (?<!\S)--exit-code[= ]0(?!\S)                         # trivy, gitleaks
    | (?<!\S)--(?:no-error-on-unmatched-pattern\s+)?no-fail(?!\S)
    | (?<!\S)-D?maven\.test\.failure\.ignore(?:=true)?(?!\S)
    """
)


def neutraliser(line: str) -> str:
    """The text in a shell line that makes it exit with 0 always; empty if there is none."""
    match = NEUTRALISERS.search(line.strip())
    return " ".join(match[0].split()) if match else ""

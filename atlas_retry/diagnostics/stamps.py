"""Takes off what CI servers put before every line of a log: times and names. Reads no tool."""

import re

# GitHub's runner writes the time of a line with seven digits behind the point; `gh run view --log`
# puts job and step before it, with tabs (cli/cli, pkg/cmd/run/view). Each step begins with a BOM.
_GITHUB = re.compile(
    r"^(?:[^\t\n]*\t[^\t\n]*\t)?\ufeff?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z(?: |$)", re.MULTILINE
)
# GitLab's runner, with FF_TIMESTAMPS: the time, the number of the stream, O or E for its kind, and
# `+` where the line goes on with the one before it (docs.gitlab.com, "CI/CD job logs").
_GITLAB = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z [\da-f]{2}[OE]"
_GITLAB_MORE = re.compile(rf"\n{_GITLAB}\+")
_GITLAB_LINE = re.compile(rf"^{_GITLAB} ?", re.MULTILINE)


def unstamped(text: str) -> str:
    """The text as the tool has printed it."""
    text = _GITHUB.sub("", text)
    return _GITLAB_LINE.sub("", _GITLAB_MORE.sub("", text))

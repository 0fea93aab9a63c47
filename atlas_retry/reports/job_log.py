"""Splits a saved log of a CI job into the commands that it ran. Parses no tool's output."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec import Struct

from atlas_retry.diagnostics.reader import unstamped
from atlas_retry.patterns import regex
from atlas_retry.text.redaction import clean

# actions/runner, ScriptHandler.cs: the first line of the script, the whole script, the shell, the
# environment. A step that `uses` an action has no shell.
_GITHUB_STEP = regex(r"^##\[group\]Run (?P<title>.*)$", re.MULTILINE)
_GITHUB_SHELL = regex(r"^shell: ", re.MULTILINE)
_GITHUB_END = regex(r"""(?mx)
    ^\#\#\[error\]
    (?P<why>
      Process[ ]completed[ ]with[ ]exit[ ]code[ ](?P<code>-?\d+)\.
    | The[ ]operation[ ]was[ ]canceled\.
    | The[ ]action[ ].*[ ]has[ ]timed[ ]out[ ]after[ ].*
    )$
    """)
_GITHUB_ERROR = regex(r"^##\[error\]", re.MULTILINE)
_GITHUB_CLEANUP = regex(r"^(?:Post job cleanup\.|Cleaning up orphan processes)$", re.MULTILINE)
_GITHUB_MARKS = regex(
    r"^##\[(?:(?:group|error|warning|notice|debug|command|section)\]|endgroup\]\n?)", re.MULTILINE
)
# gitlab-runner, shells/bash.go: every line of the script is echoed in bold green before it runs.
_GITLAB_SCRIPT = regex(
    r"section_start:\d+:(?P<name>step_script|build_script)\b(?P<body>.*?)"
    r"(?=section_end:\d+:(?P=name)\b|\Z)",
    re.DOTALL,
)
_GITLAB_COMMAND = regex(
    r"^(?:.*\r)?(?:\x1b\[0K)*\x1b\[32;1m\$ (?P<line>.*?)\x1b\[0;?m\r?$", re.MULTILINE
)
_GITLAB_PLAIN = regex(r"^\$ (?P<line>.+)$", re.MULTILINE)
_GITLAB_MULTILINE = " # collapsed multi-line command"
_GITLAB_END = regex(
    r"ERROR: Job failed: (?P<why>(?:.*exit (?:code|status) (?P<code>\d+))?.*?)(?:\x1b\[0;?m)?$",
    re.MULTILINE,
)

# Where runners check out: github.com/actions/runner-images, and what git prints on GitLab.
_GITHUB_CHECKOUT = regex(r"(?:file://)?(?:/home/runner/work|/Users/runner/work|/__w)/([^/\s]+)/\1/")
_GITLAB_CHECKOUT = regex(r"Git repository in (/builds/\S+?/)\.git/")


class JobStep(Struct, frozen=True, kw_only=True):
    """One command of a job."""

    command: str
    """May have several lines."""
    output: str
    exit_code: int | None
    """None if it was killed, see `why`."""
    why: str = ""


def without_checkout(text: str) -> str:
    """The text with the paths of the checkout relative to it."""
    for place in dict.fromkeys(_GITLAB_CHECKOUT.findall(text)):
        text = text.replace(place, "")
    return _GITHUB_CHECKOUT.sub("", text)


def steps(text: str) -> tuple[JobStep, ...]:
    """The commands of a job of GitHub or GitLab, in order; empty for any other log.

    `text` may have several jobs in a row, as `gh run view --log-failed` prints them.
    """
    plain = without_checkout(unstamped(text.replace("\r\n", "\n")))
    return tuple(_github(plain)) or tuple(_gitlab(plain))


def says_failed(text: str) -> bool:
    """Whether a log of a job says that something failed, in no step in particular."""
    return _GITHUB_ERROR.search(unstamped(text.replace("\r\n", "\n"))) is not None


def _github(text: str) -> Iterator[JobStep]:
    for match, rest in _blocks(list(_GITHUB_STEP.finditer(text)), text):
        head, _, output = rest.partition("##[endgroup]\n")
        script = _GITHUB_SHELL.split(clean(head), maxsplit=1)
        if len(script) > 1:
            yield _github_step(script[0].strip() or clean(match["title"]), output)
        elif _GITHUB_ERROR.search(output):
            yield JobStep(
                command="",
                output=_GITHUB_MARKS.sub("", clean(output)),
                exit_code=1,
                why=f"the action {clean(match['title'])} failed",
            )


def _github_step(command: str, output: str) -> JobStep:
    ended = _GITHUB_END.search(output)
    cleanup = _GITHUB_CLEANUP.search(output)
    last = min(match.start() for match in (ended, cleanup) if match) if ended or cleanup else None
    return JobStep(
        command=command,
        output=_GITHUB_MARKS.sub("", clean(output[:last])),
        exit_code=_code(ended),
        why=ended["why"] if ended else "",
    )


def _gitlab(text: str) -> Iterator[JobStep]:
    ended = _GITLAB_END.search(text)
    for section in _GITLAB_SCRIPT.finditer(text):
        body = section["body"]
        commands = list(_GITLAB_COMMAND.finditer(body)) or list(_GITLAB_PLAIN.finditer(body))
        for match, output in _blocks(commands, body):
            # The shell stops at the first command that fails, so it is the last one.
            failed = ended if match is commands[-1] else None
            yield JobStep(
                command=clean(match["line"]).removesuffix(_GITLAB_MULTILINE).strip(),
                output=clean(output),
                exit_code=_code(failed),
                why=clean(failed["why"]) if failed else "",
            )


def _blocks(heads: Sequence[re.Match[str]], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Each head with the text from its end to the next one."""
    for head, after in zip_longest(heads, heads[1:]):
        yield head, text[head.end() + 1 : after.start() if after else None]


def _code(ended: re.Match[str] | None) -> int | None:
    if ended is None:
        return 0
    return int(ended["code"]) if ended["code"] else None

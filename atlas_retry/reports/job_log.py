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
# The page has neither sections nor colours.
_GITLAB_PAGE = regex(
    r"^Executing \"(?:step|build)_script\" stage of the job script$(?P<body>.*?)"
    r"^(?=Cleaning up |Uploading artifacts|Saving cache|Running after_script|ERROR: Job |Job suc)",
    re.DOTALL | re.MULTILINE,
)
_GITLAB_MULTILINE = " # collapsed multi-line command"
_GITLAB_END = regex(
    r"ERROR: Job failed: (?P<why>(?:.*exit (?:code|status) (?P<code>\d+))?.*?)(?:\x1b\[0;?m)?$",
    re.MULTILINE,
)

# azure-pipelines-tasks, Tasks/BashV3/bash.ts; the page shows no `##[section]`.
_AZURE_STEP = regex(r"^(?:##\[section\])?Starting: (?P<title>.+)$", re.MULTILINE)
_AZURE_RUNS = regex(
    r"^=+ Starting Command Output =+\n(?:(?:\[command\])?\S+ .*_temp\S+\n)?", re.MULTILINE
)
_AZURE_SCRIPT = regex(r"^Script contents:\n(?P<script>.+)", re.MULTILINE | re.DOTALL)
_AZURE_END = regex(
    r"^(?:(?:##\[error\])?(?P<why>\S+ (?:exited|failed) with (?:exit )?code '?(?P<code>\d+)'?\.?)$"
    r"|##\[error\](?P<timeout>The (?:operation was canceled|task has timed out)\.)$"
    r"|(?:##\[section\])?Finishing: )",
    re.MULTILINE,
)

# workflow-durable-task-step-plugin runs `sh -xe`, which echoes each command behind `+`; a branch
# of `parallel` is named in front of its lines, before them the Timestamper plugin's time.
_JENKINS = regex(r"^(?:\[Pipeline\] |Finished: [A-Z]+$)", re.MULTILINE)
_JENKINS_TIME = regex(r"^(?:\[\d{4}-\S+Z\] |\d\d:\d\d:\d\d  ?)", re.MULTILINE)
_JENKINS_BRANCH = regex(r"^\[(?P<branch>[^\]\n]+)\] (?P<line>.*)$", re.MULTILINE)
_JENKINS_COMMAND = regex(r"^(?:\+|[A-Z]:\\[^>\n]*>) ?(?P<line>\S.*)$", re.MULTILINE)
_JENKINS_OVER = regex(
    r"^(?:Stage \".*\" skipped due to earlier failure|\[Pipeline\] \{ \(Declarative: Post Actions\)"
    r"|Post stage$|Failed in branch |ERROR: |Build step '.*' marked build as failure|Finished: )",
    re.MULTILINE,
)
_JENKINS_CODE = regex(r"^ERROR: script returned exit code (?P<code>-?\d+)$", re.MULTILINE)
_JENKINS_NOISE = regex(r"^\[Pipeline\] .*\n?|^\[\S+\] \$ /bin/sh -xe .*\n?", re.MULTILINE)
_JENKINS_FAILED = regex(r"^Finished: (?:FAILURE|ABORTED|UNSTABLE)$", re.MULTILINE)

# nektos/act, pkg/runner/logger.go: what a command prints has a bar, and on a terminal no job.
_ACT_LINE = regex(r"(?:\[(?P<job>[^\]\n]+)\] *)?(?P<rest>\S.*)$")
_ACT_STEP = regex(r"^\u2b50 Run Main (?P<line>.+)$", re.MULTILINE)
_ACT_PRINTED = regex(r"^\| ?(.*)$", re.MULTILINE)
_ACT_FAILED = regex(r"^\u274c +Failure - Main ", re.MULTILINE)
_ACT_CODE = regex(r"^exitcode '(?P<code>\d+)': failure", re.MULTILINE)

# Where runners check out: github.com/actions/runner-images, the agent of Azure, and what git prints
# on GitLab and Jenkins.
_GITHUB_CHECKOUT = regex(r"(?:file://)?(?:/home/runner/work|/Users/runner/work|/__w)/([^/\s]+)/\1/")
_AZURE_CHECKOUT = regex(r"(?:/[\w./-]*/_?work|/__w|[A-Z]:\\a)[/\\]\d+[/\\]s[/\\]")
_GITLAB_CHECKOUT = regex(r"Git repository in (/builds/\S+?/)\.git/")
_JENKINS_CHECKOUT = regex(
    r"^(?:\S+ +)?(?:Running on .* in|Building .*in workspace) (/\S+)$", re.MULTILINE
)


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
    jenkins = (f"{place}/" for place in _JENKINS_CHECKOUT.findall(text))
    for place in dict.fromkeys((*_GITLAB_CHECKOUT.findall(text), *jenkins)):
        text = text.replace(place, "")
    return _AZURE_CHECKOUT.sub("", _GITHUB_CHECKOUT.sub("", text))


def unwrapped(text: str) -> str:
    """The text of a log without stamps of time and without the path of the checkout."""
    return without_checkout(unstamped(text.replace("\r\n", "\n")))


def steps(text: str) -> tuple[JobStep, ...]:
    """The commands of a job, in order; empty for a log of none of the known runners.

    `text` may have several jobs in a row, as `gh run view --log-failed` prints them.
    """
    log = unwrapped(text)
    readers = (_github, _gitlab, _azure, _jenkins, _act)
    return next(filter(None, (tuple(read(log)) for read in readers)), ())


def says_failed(text: str) -> bool:
    """Whether a log of a job says that something failed, in no step in particular."""
    log = unwrapped(text)
    signs = (_GITHUB_ERROR, _GITLAB_END, _JENKINS_FAILED, _ACT_FAILED)
    return any(sign.search(log) for sign in signs)


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
    sections = [*_GITLAB_SCRIPT.finditer(text)] or [*_GITLAB_PAGE.finditer(text)]
    for section in sections:
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


def _azure(text: str) -> Iterator[JobStep]:
    for head, rest in _blocks(list(_AZURE_STEP.finditer(text)), text):
        runs = _AZURE_RUNS.search(rest)
        ended = _AZURE_END.search(rest, runs.end() if runs else 0)
        failed = ended if ended and (ended["code"] or ended["timeout"]) else None
        if runs:
            script = _AZURE_SCRIPT.search(rest[: runs.start()])
            yield JobStep(
                command=clean(script["script"]).strip() if script else "",
                output=_GITHUB_MARKS.sub(
                    "", clean(rest[runs.end() : ended.start() if ended else None])
                ),
                exit_code=_code(failed),
                why=(failed["why"] or failed["timeout"]) if failed else "",
            )
        elif _GITHUB_ERROR.search(rest):
            why = f"the task {clean(head['title'])} failed"
            output = _GITHUB_MARKS.sub("", clean(rest))
            yield JobStep(command="", output=output, exit_code=1, why=why)


def _jenkins(text: str) -> Iterator[JobStep]:
    plain = _JENKINS_TIME.sub("", clean(text))
    if not _JENKINS.search(plain):
        return
    branches: dict[str, list[str]] = {}
    for match in _JENKINS_BRANCH.finditer(plain):
        branches.setdefault(match["branch"], []).append(match["line"])
    for name, lines in branches.items():
        if any(map(_JENKINS_COMMAND.match, lines)):
            is_bad = f"\nFailed in branch {name}\n" in plain
            yield from _traced("\n".join(lines), 1 if is_bad else 0)
    own = _JENKINS_BRANCH.sub(lambda m: m[0] if m["branch"] == "Pipeline" else "", plain)
    code = _JENKINS_CODE.search(plain)
    is_branch = "\nFailed in branch " in plain
    has_failed = _JENKINS_FAILED.search(plain) is not None and not is_branch
    yield from _traced(own, (_code(code) or 1) if has_failed else 0)


def _traced(text: str, exit_code: int) -> Iterator[JobStep]:
    """The commands that a shell echoed; the last before what follows a failure is the one."""
    over = _JENKINS_OVER.search(text)
    main = text[: over.start() if over else None]
    commands = list(_JENKINS_COMMAND.finditer(main))
    for match, output in _blocks(commands, main):
        yield JobStep(
            command=match["line"],
            output=_JENKINS_NOISE.sub("", output),
            exit_code=exit_code if match is commands[-1] else 0,
        )


def _act(text: str) -> Iterator[JobStep]:
    jobs: dict[str, list[str]] = {}
    job = ""
    for line in filter(None, map(_ACT_LINE.match, clean(text).split("\n"))):
        job = line["job"] or job
        jobs.setdefault(job, []).append(line["rest"])
    for lines in jobs.values():
        log = "\n".join(lines)
        for head, rest in _blocks(list(_ACT_STEP.finditer(log)), log):
            code = _ACT_CODE.search(rest)
            failed = _ACT_FAILED.search(rest)
            yield JobStep(
                command=head["line"],
                output="\n".join(_ACT_PRINTED.findall(rest)),
                exit_code=(_code(code) or 1) if failed else 0,
            )


def _blocks(heads: Sequence[re.Match[str]], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Each head with the text from its end to the next one."""
    for head, after in zip_longest(heads, heads[1:]):
        yield head, text[head.end() + 1 : after.start() if after else None]


def _code(ended: re.Match[str] | None) -> int | None:
    if ended is None:
        return 0
    return int(ended["code"]) if ended["code"] else None

"""Logs of CI jobs: true output of tools, wrapped as the runners write it.

GitHub: actions/runner (ScriptHandler.cs, ExecutionContext.cs), cli/cli (`gh run view`). GitLab:
gitlab-runner (shells/bash.go, helpers/timestamper), docs.gitlab.com, "CI/CD job logs".
"""

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

GREEN, CYAN, RED, END = "\x1b[32;1m", "\x1b[36;1m", "\x1b[31;1m", "\x1b[0;m"


class Ran(Struct, frozen=True):
    """One command that a job ran."""

    line: str
    code: int
    output: str


def ran(line: str, root: Path, environ: Mapping[str, str], checkout: str = "") -> Ran:
    """A command's true output; with `checkout`, as if the project lay there."""
    done = subprocess.run(
        ("/bin/sh", "-c", line),
        cwd=root,
        env=dict(environ),
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    output = done.stdout.replace(str(root), checkout) if checkout else done.stdout
    return Ran(line, done.returncode, output)


def github(*steps: Ran) -> str:
    """A job's log as the web page and the API save it."""
    lines = [
        "Current runner version: '2.336.0'",
        "##[group]Operating System",
        "Ubuntu",
        "##[endgroup]",
        "##[group]Run actions/checkout@v7",
        "with:",
        "  repository: dev/app",
        "##[endgroup]",
        "Syncing repository: dev/app",
        *(line for step in steps for line in _github_step(step)),
        "Post job cleanup.",
        "Cleaning up orphan processes",
    ]
    return "\ufeff" + "".join(f"{line}\n" for line in _timed(lines))


def _github_step(step: Ran) -> Iterable[str]:
    script = step.line.split("\n")
    yield f"##[group]Run {script[0]}"
    yield from (f"{CYAN}{line}\x1b[0m" for line in script)
    yield "shell: /usr/bin/bash -e {0}"
    yield "env:"
    yield "  CI: true"
    yield "##[endgroup]"
    yield from step.output.splitlines()
    if step.code:
        yield f"##[error]Process completed with exit code {step.code}."


def _timed(lines: Iterable[str]) -> Iterable[str]:
    return (f"2026-11-22T10:00:{n % 60:02}.{n:07}Z {line}" for n, line in enumerate(lines))


def gh_view(*steps: Ran, step: str = "Run tests") -> str:
    """What `gh run view --log-failed` prints of one job."""
    lines = [line for each in steps if each.code for line in _github_step(each)]
    timed = list(_timed(lines))
    timed[0] = "\ufeff" + timed[0]
    return "".join(f"checks\t{step}\t{line}\n" for line in timed)


def gitlab(*steps: Ran, stamped: bool = False) -> str:
    """A job's trace as the raw page and the API save it; `stamped` with FF_TIMESTAMPS."""
    lines = [
        f"\x1b[0KRunning with gitlab-runner 19.1.0 (5eb085ab){END}",
        "section_start:1790797099:get_sources\r\x1b[0K",
        f"+\x1b[0K{CYAN}Getting source from Git repository{END}",
        "Initialized empty Git repository in /builds/dev/app/.git/",
        "section_end:1790797100:get_sources\r\x1b[0K",
        "section_start:1790797101:step_script\r\x1b[0K",
        f'+\x1b[0K{CYAN}Executing "step_script" stage of the job script{END}',
        *(line for step in steps for line in _gitlab_step(step)),
        "section_end:1790797109:step_script\r\x1b[0K",
    ]
    code = steps[-1].code
    lines.append(f"{RED}ERROR: Job failed: exit code {code}{END}" if code else "Job succeeded")
    if stamped:
        return "".join(
            f"2026-11-22T10:00:00.{n:06}Z 00O{line if line[0:1] == '+' else f' {line}'}\n"
            for n, line in enumerate(lines)
        )
    return "\n".join(lines).replace("\n+", "") + "\n"


def _gitlab_step(step: Ran) -> Iterable[str]:
    first, *more = step.line.split("\n")
    yield f"{GREEN}$ {first}{' # collapsed multi-line command' if more else ''}{END}"
    yield from step.output.splitlines()

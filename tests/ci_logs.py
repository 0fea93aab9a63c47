"""Logs of CI jobs: true output of tools, wrapped as the runners write it.

GitHub: actions/runner (ScriptHandler.cs, ExecutionContext.cs), cli/cli (`gh run view`). GitLab:
gitlab-runner (shells/bash.go, helpers/timestamper), docs.gitlab.com, "CI/CD job logs". Azure:
azure-pipelines-tasks (BashV3), azure-pipelines-agent. Jenkins: durable-task-plugin, and the console
of freestyle jobs. act: nektos/act (pkg/runner).
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


def gitlab_page(*steps: Ran) -> str:
    """What someone copies from the page of a job of GitLab."""
    lines = [
        "Running with gitlab-runner 19.1.0 (5eb085ab)",
        "Getting source from Git repository",
        "Initialized empty Git repository in /builds/dev/app/.git/",
        'Executing "step_script" stage of the job script',
    ]
    for step in steps:
        first, *more = step.line.split("\n")
        lines.append(f"$ {first}{' # collapsed multi-line command' if more else ''}")
        lines += step.output.splitlines()
    code = steps[-1].code
    lines.append("Cleaning up project directory and file based variables")
    lines.append(f"ERROR: Job failed: exit code {code}" if code else "Job succeeded")
    return "".join(f"{line}\n" for line in lines)


def azure(*steps: Ran, page: bool = False) -> str:
    """A job's log as the API saves it, or as someone copies it from the page."""
    mark = "" if page else "##[section]"
    lines = [
        f"{mark}Starting: Checkout dev/app@main to s",
        "=" * 78,
        "Task         : Get sources",
        "=" * 78,
        "Syncing repository: dev/app (GitHub)",
        f"{mark}Finishing: Checkout dev/app@main to s",
    ]
    for step in steps:
        lines += [
            f"{mark}Starting: Run checks",
            "=" * 78,
            "Task         : Bash",
            "Description  : Run a Bash script on macOS, Linux, or Windows",
            "=" * 78,
            "Generating script.",
            *(["Script contents:", step.line] if "\n" not in step.line else []),
            "========================== Starting Command Output ===========================",
            *([] if page else ["[command]/usr/bin/bash --norc /home/vsts/work/_temp/6be2.sh"]),
            *step.output.splitlines(),
            *([f"##[error]Bash exited with code '{step.code}'."] if step.code else []),
            f"{mark}Finishing: Run checks",
        ]
    return "".join(f"{line}\n" for line in (lines if page else _timed(lines)))


def jenkins(*steps: Ran, stamped: bool = False) -> str:
    """The console of a declarative pipeline; `stamped` by the Timestamper plugin."""
    lines = [
        "Started by user dev",
        "[Pipeline] node",
        "Running on agent-3 in /home/jenkins/agent/workspace/app_main",
        "[Pipeline] {",
        "[Pipeline] stage",
        "[Pipeline] { (Test)",
    ]
    for step in steps:
        first, *more = step.line.split("\n")
        lines += ["[Pipeline] sh", f"+ {first}", *more, *step.output.splitlines()]
    code = steps[-1].code
    lines += ["[Pipeline] }", "[Pipeline] // stage"]
    if code:
        lines += ["[Pipeline] stage", "[Pipeline] { (Deploy)"]
        lines += ['Stage "Deploy" skipped due to earlier failure(s)', "[Pipeline] }"]
    lines += ["[Pipeline] { (Declarative: Post Actions)", "[Pipeline] sh", "+ rm -rf out"]
    lines += ["[Pipeline] }", "[Pipeline] // node", "[Pipeline] End of Pipeline"]
    lines += [f"ERROR: script returned exit code {code}", "Finished: FAILURE"] if code else []
    lines += [] if code else ["Finished: SUCCESS"]
    time = "[2026-11-22T10:00:00.123Z] " if stamped else ""
    return "".join(f"{time}{line}\n" for line in lines)


def jenkins_freestyle(*steps: Ran) -> str:
    """The console of a freestyle job with one shell step."""
    lines = [
        "Started by an SCM change",
        "Building remotely on agent-3 (linux) in workspace /home/jenkins/agent/workspace/app_main",
        "[app_main] $ /bin/sh -xe /tmp/jenkins6180339887.sh",
    ]
    for step in steps:
        lines += [f"+ {step.line}", *step.output.splitlines()]
    if steps[-1].code:
        lines += ["Build step 'Execute shell' marked build as failure", "Finished: FAILURE"]
    return "".join(f"{line}\n" for line in lines)


def act(*steps: Ran, terminal: bool = False) -> str:
    """What act prints of two jobs at once, one of which only waits; `terminal`: in colour."""
    bar = f"{CYAN}|\x1b[0m" if terminal else "[CI/test]   |"
    lines = ["[CI/test] \U0001f680  Start image=node:16-buster-slim"]
    for step in steps:
        name = step.line.partition("\n")[0]
        lines.append(f"[CI/test] \u2b50 Run Main {name}")
        lines.append(
            "[CI/test]   \U0001f433  docker exec cmd=[bash -e /var/run/act/workflow/0] user="
        )
        lines += [] if terminal else ["[CI/docs]   | nothing to do"]
        lines += [f"{bar} {line}" for line in step.output.splitlines()]
        if step.code:
            lines.append(f"[CI/test]   \u274c  Failure - Main {name} [1.2s]")
            lines.append(f"[CI/test] exitcode '{step.code}': failure")
        else:
            lines.append(f"[CI/test]   \u2705  Success - Main {name} [1.2s]")
    lines.append(f"[CI/test] \U0001f3c1  Job {'failed' if steps[-1].code else 'succeeded'}")
    return "".join(f"{line}\n" for line in lines)

"""Whole screens: what command lines print in a situation, as transcripts to read.

A transcript `NAME.txt` says what it is about, prepares a project (`% ` lines, shell), and types
commands (`$ ` lines). Below each stands what it printed, standard error last, and its exit code
if that is not 0. `make golden` types them anew and prints what differs. RUN in a command is the
id of the newest run; times, ids and folders of the machine are written as N s, RUN and /w. Texts
that can be made of values alone are in `pages.py`, without a process.
"""

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from msgspec.structs import replace

from tests.projects import Ended, Project, atlas, shell

FOLDER = Path(__file__).parent
SCREENS = {path.stem: path for path in sorted(FOLDER.glob("*.txt"))}
SETUP = r"""
export GIT_AUTHOR_NAME=dev GIT_AUTHOR_EMAIL=dev@example.invalid
export GIT_COMMITTER_NAME=dev GIT_COMMITTER_EMAIL=dev@example.invalid
configure() { {
    printf 'version: 1\nagent: {backend: scripted, path: %s}\nvalidation:\n' "$SCRIPT"
    for gate; do printf '  %s\n' "$gate"; done
  } > .atlas/config.yaml; git commit -qam configured; }
attempt() { mkdir -p "$SCRIPT/$1/files"; printf "$3" > "$SCRIPT/$1/files/$2"
  echo '{"status": "done"}' > "$SCRIPT/$1/reply.json"; }
"""
"""Shell for `% ` lines: the gates as YAML; what the agent writes in its n-th attempt."""
LINT = """grep -n -- ' - ' calc.py | sed 's/:.*/:5: M1 minus where plus is meant/; s/^/calc.py:/'
! grep -q -- ' - ' calc.py
"""
LABEL = re.compile(r"[a-z][^:]*:$")
RUN = r"\b\d{8}-\d{6}-[0-9a-f]{4}\b"
VALIDATION = r"\b\d{8}-\d{6}-\d{6}-validation\b"
SAME = (
    (RUN, "RUN"),
    (VALIDATION, "VALIDATION"),
    (r"\b[0-9a-f]{12} on ", "COMMIT on "),
    (r"(/validations/[\w ]+)-[0-9a-f]+", r"\1"),
    (r"\blr-\d{4}-\d\d-\d\d-", "lr-DATE-"),
    (r"\b\d\d:\d\d:\d\d\.\d{3}\b", "TIME"),
    (r"\b\d+(\.\d)? m?s\b", "N s"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?", "DATE"),
    (r"\b(index|Updating) [0-9a-f]{7,}\.\.[0-9a-f]{7,}", r"\1 OLD..NEW"),
    (r"\b(tree|this is) [0-9a-f]{7,}\b", r"\1 TREE"),
)


def typed_again(screen: str, project: Project) -> str:
    """The transcript with what its commands print now."""
    (project.root / "lint.sh").write_text(LINT)
    gate = "configure 'lint: [{name: style, run: sh lint.sh}]'"
    assert _shell(project, f"git rm -q test_calc.py; git add lint.sh; {gate}").code == 0
    lines, latest = list[str](), {"RUN": "RUN", "VALIDATION": "VALIDATION"}
    for line in _asked(screen):
        lines.append(line)
        if line.startswith("% "):
            done = _shell(project, line[2:])
            assert done.code == 0, (line, done.out, done.err)
        elif line.startswith("$ "):
            done = _typed(
                project, re.sub(r"\b(RUN|VALIDATION)\b", lambda it: latest[it[0]], line[2:])
            )
            lines += [
                *(done.out + done.err).splitlines(),
                *([f"[exit {done.code}]"] * bool(done.code)),
                "",
            ]
            for pattern, name in SAME[:2]:
                found = re.findall(pattern, done.out + done.err)
                latest[name] = found[0] if found else latest[name]
    text = "\n".join(lines).rstrip("\n") + "\n"
    text = text.replace(str(project.root.parent), "/w")
    for pattern, words in SAME:
        text = re.sub(pattern, words, text)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def _asked(screen: str) -> Iterator[str]:
    """The lines that a person wrote: the head up to the first command, then only commands."""
    head = True
    for line in screen.splitlines():
        head = head and not line.startswith("$ ")
        if head or line.startswith(("$ ", "% ")):
            yield line


def _typed(project: Project, command: str) -> Ended:
    words = shlex.split(command.replace("/w/", f"{project.root.parent}/"))
    variables = dict(word.split("=") for word in takewhile(lambda word: "=" in word, words))
    program, *arguments = words[len(variables) :]
    if program == "atlas":
        return atlas(replace(project, environ=project.environ | variables), *arguments)
    return _shell(project, shlex.join(words))


def _shell(project: Project, command: str) -> Ended:
    return shell(project, f"SCRIPT={shlex.quote(str(project.script))}{SETUP}{command}")


def next_steps(screen: str) -> Iterator[tuple[str, bool]]:
    """Each command that a screen proposes as the next, and whether the transcript types it.

    Help is typed in `help.txt`.
    """
    lines = screen.splitlines()
    is_step = False
    for number, line in enumerate(lines):
        is_step = line.startswith("  ") and (is_step or bool(LABEL.match(lines[number - 1])))
        command = line.strip().split(" > ")[0]
        if is_step and command.startswith(("atlas ", "git ")) and not command.endswith(" -h"):
            yield command, any(one.startswith("$ ") and one.endswith(command) for one in lines)

"""Whole runs on the changes of `changes.txt`: cheats caught, honest fixes let through, suites read.

.venv/bin/python bench/changes.py [--sound] [--second] [NAME ...]

An agent makes each change, in both of two attempts. A cheat is caught if the run does not end
green, an honest fix is let through if it ends `fixed`, a suite that prints failures if `validate`
is green.
`--sound` only checks the cases: each gate fails before its change, and passes after it.
`--second` takes the cases of `changes2.txt`.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

FOLDER = Path(__file__).parent
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.invalid")
FAILING = ("cheat", "honest")


class Change(Struct, frozen=True, kw_only=True):
    """One case: a project, its gate, and what the agent makes of it."""

    label: str
    name: str
    gate: str
    before: Mapping[str, str]
    after: Mapping[str, str | None]
    """Files after the change; None if it is deleted."""


def changes(text: str) -> Iterator[Change]:
    """The cases of a text, in the form that its head describes."""
    bases: dict[str, Change] = {}
    for part in text.split("\n=== ")[1:]:
        head, _, body = part.partition("\n")
        words, *rest = [
            field.strip() for field in head.split("|", 2 if head.startswith(FAILING) else 1)
        ]
        label, name = words.split()
        base = bases.get(rest[0]) if label in FAILING else None
        before, after = dict(base.before) if base else {}, dict[str, str | None]()
        for section in re.split(r"(?m)^(?=(?:---|\+\+\+|~~~|xxx) \S+$)", body)[1:]:
            first, _, content = section.rstrip("\n").partition("\n")
            sign, path = first.split()
            text_of = f"{content}\n" if content.strip() else ""
            match sign:
                case "---":
                    before[path] = text_of
                case "+++":
                    after[path] = text_of
                case "xxx":
                    after[path] = None
                case "~~~":
                    now = str(after.get(path, before[path]))
                    old, _, new = f"\n{content}".partition("\n=>")
                    old, new = old.removeprefix("\n"), new.removeprefix("\n").rstrip("\n")
                    if old not in now:
                        sys.exit(f"{name}: {path} does not hold {old!r}")
                    after[path] = now.replace(old, new, 1) if old else f"{new}\n"
        gate = (rest[1] if base and len(rest) > 1 else base.gate) if base else rest[0]
        one = Change(label=label, name=name, gate=gate, before=before, after=after)
        if label == "base":
            bases[name] = one
        else:
            yield one


def environ(folder: Path) -> dict[str, str]:
    """An environment made from nothing but where the tools are."""
    bin_folder = str(Path(sys.executable).parent)
    home = Path.home()
    return {
        "PATH": os.pathsep.join((bin_folder, os.environ["PATH"])),
        "HOME": str(folder),
        "ATLAS_HOME": str(folder / "state"),
        "GOCACHE": str(home / ".cache/go-build"),
        "GOFLAGS": "-mod=mod",
        "CARGO_HOME": str(home / ".cargo"),
        "RUSTUP_HOME": str(home / ".rustup"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def prepared(change: Change, folder: Path) -> Path:
    """A committed project with the gate, and the script of an agent beside it."""
    root = folder / "project"
    for path, text in change.before.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    for number in ("1", "2"):
        files = folder / "script" / number / "files"
        files.mkdir(parents=True)
        for path, content in change.after.items():
            if content is not None:
                (files / path).parent.mkdir(parents=True, exist_ok=True)
                (files / path).write_text(content, encoding="utf-8")
        gone = [path for path, content in change.after.items() if content is None]
        (files.parent / "delete").write_text("\n".join(gone), encoding="utf-8")
    kind, _, command = change.gate.partition(" ")
    settings = {
        "version": 1,
        "validation": {kind: [command]},
        "agent": {"backend": "scripted", "path": str(folder / "script")},
    }
    (root / ".atlas").mkdir()
    (root / ".atlas/config.yaml").write_text(json.dumps(settings), encoding="utf-8")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "start")):
        subprocess.run((*GIT, *words), cwd=root, check=True, env=environ(folder))
    return root


def ended(change: Change) -> str:
    """The verdict of a run with the change, or the status of the gate of a printing suite."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = prepared(change, folder)
        words = ("retry", ".", "--ai-fix") if change.label in FAILING else ("validate",)
        done = subprocess.run(
            (sys.executable, "-m", "atlas_retry", *words, "--json"),
            cwd=root,
            env=environ(folder),
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            report = json.loads(done.stdout)
        except ValueError:
            return f"no report: {done.stderr[-300:]}"
        if change.label not in FAILING:
            results = report["test_results"] + report["lint_results"]
            return ", ".join(f"{one['status']} {one['error'] or ''}" for one in results)
        said = [
            f"{key}:{one['rule']}"
            for attempt in report["attempts"]
            for key in ("violations", "held", "noted")
            for one in attempt[key]
        ]
        return " ".join((report["verdict"], *dict.fromkeys(said)))


def is_right(change: Change, end: str) -> bool:
    """Whether a run ended as it must."""
    word = end.split(maxsplit=1)[0]
    if change.label == "cheat":
        return word in ("needs_review", "rejected", "exhausted", "stalled", "gave_up")
    return word == ("fixed" if change.label == "honest" else "passed")


def soundness(change: Change) -> str:
    """What is wrong with a case; empty if its gate fails before it and passes after it."""
    command, codes = change.gate.partition(" ")[2], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = prepared(change, folder)
        shutil.rmtree(root / ".atlas")
        for step in ("before", "after"):
            if step == "after":
                # new times of change, by which make decides
                files = folder / "script/1/files"
                shutil.copytree(files, root, copy_function=shutil.copy, dirs_exist_ok=True)
                for path in (folder / "script/1/delete").read_text().split():
                    (root / path).unlink()
            codes.append(
                subprocess.run(
                    ("/bin/sh", "-c", command),
                    cwd=root,
                    env=environ(folder),
                    capture_output=True,
                    check=False,
                )
            )
    before, after = codes
    wanted = change.label in FAILING
    if bool(before.returncode) != wanted or after.returncode:
        return (
            f"{before.returncode} -> {after.returncode}: {(after.stdout + after.stderr)[-400:]!r}"
        )
    return ""


def main(words: list[str]) -> int:
    """Run the named cases, or all, and print the table."""
    cases = FOLDER / ("changes2.txt" if "--second" in words else "changes.txt")
    text = cases.read_text(encoding="utf-8")
    print(f"{cases.name} sha256 {hashlib.sha256(text.encode()).hexdigest()}")
    names = {word for word in words if not word.startswith("-")}
    chosen = [one for one in changes(text) if not names or one.name in names]
    right, count = Counter[str](), Counter[str](one.label for one in chosen)
    for one in chosen:
        end = soundness(one) if "--sound" in words else ended(one)
        is_well = not end if "--sound" in words else is_right(one, end)
        right[one.label] += is_well
        if names or not is_well:
            print(f"{'  ' if is_well else '! '}{one.label:9}{one.name:44}{end}", flush=True)
    for label, number in count.items():
        print(f"{label:9}{right[label]} of {number}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

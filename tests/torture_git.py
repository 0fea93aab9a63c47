"""Torture of what a person and an agent do in git at once, of gitfiles, and of uncommitted files.

Each row takes a folder, a number of trials and a seed, and says what it came to.
"""

import random
import subprocess
import sys
import time
from pathlib import Path

import yaml

from tests.crashes import environ_below
from tests.repositories import write
from tests.torture import LIMIT_S, Tally

ME = "git -c user.name=dev -c user.email=dev@example.invalid"
BAD, GOOD = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"
CHECK = "python3 -S -c 'from calc import add; assert add(1, 2) == 3'"
REPAIR = "sed -i 's/a - b/a + b/' calc.py"
ACTIONS = (
    f"echo mine > mine$N.txt; {ME} add mine$N.txt; {ME} commit -qm mine$N",
    f"echo mine >> other.txt; {ME} commit -qam mine$N",
    f"{ME} commit -q --amend -m mine$N",
    f"{ME} commit -q --allow-empty -m mine$N",
    "git branch mine$N",
    "git branch -m side aside$N; git branch side",
    "git tag mine$N",
    f"{ME} tag -a -m mine mine$N",
    f"echo mine >> other.txt; {ME} stash -q",
    f"{ME} stash push -qu -- other.txt",
    "git switch -qc mine$N",
    "git checkout -q --detach",
    f"{ME} merge -q --no-edit side",
    f"{ME} rebase -q --autostash side",
    f"{ME} cherry-pick --allow-empty side",
    "git fetch -q --all --prune --tags",
    "git gc -q --prune=now",
    "git pack-refs --all; git repack -qad; git update-server-info; git commit-graph write",
    "git config user.name mine$N",
    "git remote add mine$N ../elsewhere",
    f"{ME} notes add -f -m mine$N",
    "git worktree add -q ../beside$N -b beside$N",
    "git symbolic-ref refs/heads/now$N refs/heads/side",
    "git update-ref refs/mine/$N HEAD",
    "git bisect start; git bisect reset",
    f"{ME} revert --no-edit HEAD",
    "git reset -q --soft HEAD; git add -N .gitignore",
)
"""What a person does; `$N` is the number of the trial."""
LOOK = (
    "git for-each-ref; git stash list --format=%H; git symbolic-ref -q HEAD; git config -l --local"
)
DEEDS = (f"{ME} tag agents", "git branch agents", f"{ME} commit -qam agents", "git stash -q", "")
"""What the agent does as well."""


def shell(root: Path, script: str) -> str:
    """What a script prints; it may fail, as git refuses some actions after others."""
    argv = ("sh", "-c", script)
    done = subprocess.run(
        argv, cwd=root, env=environ_below(root.parent), capture_output=True, text=True, check=False
    )
    return done.stdout


def project(folder: Path, turn: str) -> Path:
    root = folder / "project"
    (folder / "home").mkdir(parents=True)
    agent = {"backend": "command", "command": turn}
    sections = {
        "version": 1,
        "validation": {"test": [CHECK]},
        "agent": agent,
        "retry": {"flake_reruns": 0, "max_ai_retry_attempts": 1},
    }
    for path, text in {
        "calc.py": BAD,
        "other.txt": "one\n",
        ".gitignore": "__pycache__/\n",
        ".atlas/config.yaml": yaml.safe_dump(sections),
    }.items():
        write(root, path, text)
    shell(root, f"git init -q -b main; git add -A; {ME} commit -qm start; git branch idle")
    shell(root, f"git switch -qc side; echo s > side.txt; git add -A; {ME} commit -qm side")
    shell(root, f"git switch -q main; echo x > last.txt; git add -A; {ME} commit -qm last")
    shell(
        root, f"git clone -q . ../ahead; git remote add origin ../ahead; echo > st; {ME} stash -qu"
    )
    return root


def start(root: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        (sys.executable, "-m", "atlas_retry", *arguments),
        cwd=root,
        env=environ_below(root.parent),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def person(folder: Path, trials: int, seed: int) -> Tally:
    """A person does one to three things in git during a turn, at random moments; all of it stays.

    In every second trial the agent does something in git, too, which is undone.
    """
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    for number in range(trials):
        deed = dice.choice(DEEDS) if number % 2 else ""
        turn = f"touch ../ready; while ! test -e ../go; do sleep 0.02; done; {REPAIR}; {deed}"
        root = project(folder / f"person-{number}", turn)
        actions = [
            one.replace("$N", str(number)) for one in dice.sample(ACTIONS, dice.choice((1, 2, 3)))
        ]
        child = start(root, "retry", ".", "--ai-fix", "--plain")
        while not (root.parent / "ready").exists() and child.poll() is None:
            time.sleep(0.01)
        for action in actions:
            time.sleep(dice.uniform(0, 0.1))
            shell(root, action)
        expected = shell(root, LOOK)
        (root.parent / "go").touch()
        output, _ = child.communicate(timeout=LIMIT_S)
        tally.trials += 1
        tally.hit += (root.parent / "ready").exists()
        faults = []
        if shell(root, LOOK) != expected:
            faults.append("git's state is not as the person left it")
        if not deed and "git-state" in output:
            faults.append("the attempt was refused")
        if "this is a bug in atlas" in output:
            faults.append("a traceback")
        if faults:
            said = "; ".join((*actions, f"agent: {deed}", output[-900:]))
            tally.failures.append(f"person-{number}: {'; '.join(faults)}; {said}")
    return tally


INNER = (
    "git worktree add -q nested/work -b work",
    "git clone -q --separate-git-dir ../store . nested/work",
    f"{ME} -c protocol.file.allow=always submodule add -q ./ nested/work",
)
RUINS = (
    "rm .git",
    "echo junk > .git",
    "rm .git; ln -s /nowhere .git",
    'echo "gitdir: $(cd ../..; pwd)/.git" > .git',
    "rm .git; git init -q",
    "rm .git; mkfifo .git",
    "chmod 000 .git; rm -f .git; mkdir .git",
    ": > .git",
)


def gitfiles(folder: Path, trials: int, seed: int) -> Tally:
    """An agent ruins the `.git` file; it comes back first, and no other repository is touched.

    In two of three trials atlas is killed, and `undo` has the last word.
    """
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    for number in range(trials):
        ruin, kills = dice.choice(RUINS), number % 3
        end = "kill -KILL $PPID; sleep 3" if kills else "true"
        outer = project(
            folder / f"gitfile-{number}", f"touch ../../../hit; {ruin}; {REPAIR}; {end}"
        )
        shell(outer, dice.choice(INNER) + "; git -C nested/work switch -qC mine")
        root = outer / "nested/work"
        content = (root / ".git").read_bytes()
        look = "git rev-parse HEAD; git symbolic-ref HEAD; git diff --cached --name-only"
        before, there = shell(root, look), shell(outer, look)
        faults, outputs = [], ""
        for arguments in (("retry", ".", "--ai-fix", "--plain"), ("undo",)):
            child = start(root, *arguments)
            try:
                outputs += child.communicate(timeout=LIMIT_S)[0]
            except subprocess.TimeoutExpired:
                child.kill()
                faults.append(f"{arguments[0]} hangs")
            time.sleep(0.3 if kills else 0)
        tally.trials += 1
        tally.hit += (outer.parent / "hit").exists()
        if not (root / ".git").is_file() or (root / ".git").read_bytes() != content:
            faults.append(".git is not restored")
        elif shell(root, look) != before:
            faults.append("its own state is not as it was")
        if shell(outer, look) != there:
            faults.append("another repository was touched")
        if (root / "calc.py").read_text() != BAD:
            faults.append("the attempt is left")
        if faults:
            tally.failures.append(
                f"gitfile-{number}: {ruin}: {'; '.join(faults)}; {outputs[-900:]}"
            )
    return tally


THROWS = (
    "git checkout -q -- .; git clean -fdq",
    "git clean -fdxq -e .atlas; git restore -q .",
    "git ls-files -com --exclude-standard -z | grep -zv '^calc.py\\|^.atlas' | xargs -0 rm -f",
)
NAMES = ("style.css", "docs/über.md", "a b.txt", "x.bin", "page.html", "deep/er/note", "mine.py")


def thrown_away(folder: Path, trials: int, seed: int) -> Tally:
    """An agent throws uncommitted files away; each is back, or named with the command."""
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    for number in range(trials):
        how = dice.choice(THROWS)
        root = project(folder / f"thrown-{number}", f"{how}; {REPAIR}")
        files = dice.sample(NAMES, dice.randrange(1, len(NAMES)))
        tracked = {name for name in files if dice.random() < 1 / 2}
        for name in tracked:
            write(root, name, "committed\n")
        shell(root, f"git add -A; {ME} commit -qm more")
        contents = {name: f"mine {dice.random()}\n" for name in files}
        for name, text in contents.items():
            write(root, name, text)
        child = start(root, "retry", ".", "--ai-fix", "--plain")
        output, _ = child.communicate(timeout=LIMIT_S)
        tally.trials += 1
        tally.hit += child.returncode == 0
        lost = "lost, and not committed: "
        gone = [name for name in files if not _is(root / name, contents[name])]
        silent = [name for name in gone if f"{lost}{name}" not in output]
        faults = [f"gone and not named: {', '.join(silent)}"] if silent else []
        for line in filter(_is_command, output.splitlines()):
            shell(root, line.strip().replace("atlas ", f"{sys.executable} -m atlas_retry ", 1))
        if left := [name for name in gone if not _is(root / name, contents[name])]:
            faults.append(f"the command does not restore {', '.join(left)}")
        if faults:
            tally.failures.append(f"thrown-{number}: {how}: {'; '.join(faults)}; {output[-900:]}")
    return tally


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text


def _is_command(line: str) -> bool:
    return " start --path " in line

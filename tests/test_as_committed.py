"""`atlas validate --as-committed`: the gates on what a fresh clone would have."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.projects import FIXED, Ended, Project, atlas, git

SHOWS = "ls -A; git status --short; cat calc.py"


def validated(project: Project, *gates: str, setup: str = "", path: str = "") -> Ended:
    validation: dict[str, object] = {"lint": list(gates)}
    project.configure(validation=validation | ({"setup": setup} if setup else {}))
    path = path or project.environ["PATH"]
    return atlas(project, "validate", "--as-committed", PATH=path)


def worktrees(project: Project) -> list[str]:
    return git(project.root, "worktree", "list", environ=project.environ).splitlines()


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("test ! -e notes.txt", 0),  # untracked
        ("test ! -e local.env", 0),  # ignored
        ("test -e staged.py", 0),
        ("grep -q 'a - b' calc.py", 0),  # the unstaged edit is left out
        ("git diff --cached --name-only | grep -qx staged.py", 0),
        ("git rev-parse HEAD", 0),
        ("test -e notes.txt", 1),
    ],
)
def test_gates_see_head_and_index_only(project: Project, gate: str, code: int) -> None:
    root = project.root
    (root / ".gitignore").write_text("__pycache__/\nlocal.env\n")
    project.commit()
    for name in ("notes.txt", "local.env", "staged.py"):
        (root / name).write_text("x = 1\n")
    (root / "calc.py").write_text(FIXED)
    git(root, "add", "staged.py", environ=project.environ)
    before = git(root, "status", "--porcelain", environ=project.environ)
    done = validated(project, gate)
    assert done.code == code, done
    assert "left out: what git ignores, " in done.out + done.err
    assert "notes.txt" in done.out + done.err
    assert len(worktrees(project)) == 1
    assert (root / "local.env").exists()
    assert before in git(root, "status", "--porcelain", environ=project.environ) + " M .atlas"


def test_setup_runs_first(project: Project) -> None:
    done = validated(project, "test -e installed", setup="touch installed")
    assert done.code == 0, done
    assert not (project.root / "installed").exists()


def test_a_failing_setup_is_broken_and_runs_no_gate(project: Project) -> None:
    done = validated(project, "touch ../ran", setup="echo no network; exit 7")
    assert done.code == 3
    assert "validation.setup failed: exit code 7" in done.out + done.err
    state = Path(project.environ["ATLAS_HOME"])
    assert not [*state.rglob("ran")]


def test_programs_of_an_activated_environment_are_not_there(project: Project) -> None:
    tools = project.root / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "checker").write_text("#!/bin/sh\nexit 0\n")
    (tools / "checker").chmod(0o755)
    (project.root / ".gitignore").write_text("__pycache__/\n.venv/\n")
    path = f"{tools}:{project.environ['PATH']}"
    assert validated(project, "checker", path=path).code == 3
    setup = "mkdir -p .venv/bin; printf '#!/bin/sh\\n' > .venv/bin/checker; chmod +x .venv/bin/*"
    assert validated(project, "checker", setup=setup, path=path).code == 0


def test_a_module_that_git_ignores_is_missed(project: Project) -> None:
    (project.root / ".gitignore").write_text("__pycache__/\nlocal.py\n")
    (project.root / "local.py").write_text("")
    (project.root / "calc.py").write_text("import local\n" + FIXED)
    project.commit()
    project.configure()
    assert atlas(project, "validate").code == 0
    done = atlas(project, "validate", "--as-committed", "--json")
    assert done.code == 1
    (test,) = json.loads(done.out)["test_results"]
    assert "No module named 'local'" in test["stderr"]


def test_without_a_commit_it_says_so(project: Project) -> None:
    git(project.root, "checkout", "-q", "--orphan", "fresh", environ=project.environ)
    done = atlas(project, "validate", "--as-committed")
    assert done.code in {2, 3}
    assert "Traceback" not in done.err


def test_a_killed_one_leaves_nothing_for_long(project: Project) -> None:
    project.configure(validation={"lint": ["touch here; sleep 60"]})
    child = subprocess.Popen(
        (sys.executable, "-m", "atlas_retry", "validate", "--as-committed"),
        cwd=project.root,
        env=project.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    above = Path(project.environ["ATLAS_HOME"]) / "as-committed"
    until = time.monotonic() + 60
    while not [*above.rglob("here")] and time.monotonic() < until:
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait(60)
    assert validated(project, "true").code == 0
    assert len(worktrees(project)) == 1
    assert [file for file in above.rglob("*") if file.is_file()] == []


# --- what only this machine has -----------------------------------------------------------------


def checked(project: Project, *flags: str) -> str:
    done = atlas(project, "validate", *flags)
    assert done.code == 0, done
    return "\n".join(line for line in (done.out + done.err).splitlines() if "only here" in line)


@pytest.mark.parametrize(
    ("ignored", "code", "is_named"),
    [
        ("local_settings.py", "from local_settings import KEY\n", True),
        ("local_settings.py", "", False),
        ("local_settings.py", "local_settings = 1\n", False),
        ("secrets.json", "open('secrets.json')\n", True),
        (".env", "load('.env')\n", True),
        (".env", "x = process.env\n", False),
        ("node_modules/dep/index.js", "import dep\n", False),
    ],
)
def test_ignored_files_that_code_needs_are_named(
    project: Project, ignored: str, code: str, is_named: bool
) -> None:
    project.configure(validation={"lint": ["true"]})
    (project.root / ".gitignore").write_text(f"/{ignored.split('/', maxsplit=1)[0]}\n")
    (project.root / "app.py").write_text(code)
    (project.root / "README.md").write_text(f"{ignored} is yours\n")
    file = project.root / ignored
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    project.commit()
    assert (ignored in checked(project, "--check")) == is_named


def test_untracked_files_are_named_under_check_and_after_a_green_run(project: Project) -> None:
    project.configure(validation={"lint": ["true"]})
    project.commit()
    assert checked(project, "--check") == ""
    (project.root / "new.py").write_text("")
    assert "git does not track new.py" in checked(project, "--check")
    assert checked(project) == ""
    assert "new.py" in atlas(project, "retry", ".").out.splitlines()[-1]


def test_an_import_from_another_checkout_is_named(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    (other / "src").mkdir()
    packages = project.root / ".venv" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (project.root / ".venv" / "pyvenv.cfg").write_text("")
    (packages / "dep.pth").write_text(f"{other}/src\n")
    (project.root / ".gitignore").write_text(".venv/\n")
    project.configure(validation={"lint": ["true"]})
    project.commit()
    assert f"imported from another checkout: {other}/src" in checked(project, "--check")

"""`atlas deliver`: exactly what a run changed, byte for byte, and nothing that lay beside it."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from atlas_retry.reports.delivery import comment
from tests.projects import CALC, FIXED, UNITTEST, Project, atlas, git

HELPER = "import helper\n\n\ndef add(a, b):\n    return helper.plus(a, b)\n"
AGENT = r"""
printf 'import helper\n\n\ndef add(a, b):\n    return helper.plus(a, b)\n' > calc.py
printf 'def plus(a, b):\n    return a + b\n' > helper.py
printf '\0\1\377binary' > data.bin
printf 'one\r\ntwo\r\n' > windows.txt
printf '#!/bin/sh\n' > tool.sh; chmod +x tool.sh readme
rm gone.txt; ln -sf helper.py link; mkdir -p 'deep/a b'; printf '\303\244' > 'deep/a b/uml ä.txt'
: > empty
"""


@pytest.fixture
def run(project: Project) -> Project:
    """A project whose agent has done all that a patch can hold."""
    for name in ("gone.txt", "readme"):
        (project.root / name).write_text("there\n")
    (project.root / ".gitattributes").write_text("*.txt text eol=crlf\n")
    project.configure(agent={"backend": "command", "command": f"sh -c '. {project.script}/agent'"})
    (project.script / "agent").write_text(AGENT)
    config = project.root / ".atlas/config.yaml"
    config.write_text(config.read_text().replace("  path:", "  # path:"))
    project.commit()
    ended = atlas(project, "retry", ".", "--ai-fix")
    assert ended.code == 0, ended.out + ended.err
    return project


def files(root: Path) -> Mapping[str, object]:
    """Every file with its content and mode, every link with its target."""
    paths = (path for path in root.rglob("*") if ".git" not in path.relative_to(root).parts)
    return {
        str(path.relative_to(root)): str(path.readlink())
        if path.is_symlink()
        else (path.read_bytes(), bool(path.stat().st_mode & 0o100))
        for path in paths
        if path.is_symlink() or (path.is_file() and "__pycache__" not in path.parts)
    }


def clone(project: Project, source: Path | None = None, *options: str) -> Path:
    root = project.root.with_name(f"clone{len(list(project.root.parent.glob('clone*')))}")
    asked = ("clone", "-q", *options, str(source or project.root), str(root))
    git(project.root, *asked, environ=project.environ)
    return root


@pytest.mark.parametrize("apply", [("apply",), ("am", "-q", "--keep-cr")])
def test_the_patch_recreates_the_validated_tree(apply: tuple[str, ...], run: Project) -> None:
    validated = files(run.root)
    (run.root / "mine.txt").write_text("what else lies in the tree\n")
    (run.root / "calc.py").write_text("# edited since\n")
    assert atlas(run, "deliver", "--patch", "../fix.patch").code == 0
    fresh = clone(run)
    git(fresh, *apply, "../fix.patch", environ=run.environ)
    assert files(fresh) == validated


def test_writing_a_patch_leaves_the_repository_unchanged(run: Project) -> None:
    def state() -> str:
        objects = git(run.root, "count-objects", environ=run.environ)
        return objects + git(run.root, "status", "--porcelain", environ=run.environ)

    before = state()
    assert atlas(run, "deliver", "--patch", "../fix.patch").code == 0
    assert state() == before


def test_a_branch_holds_one_commit_on_top_of_the_start(run: Project) -> None:
    before = git(run.root, "status", "--porcelain", environ=run.environ)
    for _ in range(2):  # the same run is always the same commit
        ended = atlas(run, "deliver", "--branch", "fix/add")
        assert ended.code == 0, ended.err
    text = git(run.root, "log", "-1", "--format=%P%n%B", "fix/add", environ=run.environ)
    assert text.split("\n")[0] == git(run.root, "rev-parse", "HEAD", environ=run.environ).strip()
    assert "Make test pass" in text
    assert "failed -> passed" in text
    assert "1 attempt, cost not reported" in text
    assert text.rstrip().splitlines()[-1].startswith("Atlas-Run: ")
    assert git(run.root, "status", "--porcelain", environ=run.environ) == before
    assert files(clone(run, None, "-b", "fix/add")) == files(run.root)


def test_files_with_uncommitted_changes_are_not_delivered(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    (project.root / "calc.py").write_text("# mine\n" + CALC)
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    ended = atlas(project, "deliver", "--patch", "../fix.patch")
    assert ended.code == 3
    assert "had uncommitted changes: calc.py" in ended.err


def test_validated_but_undelivered_files_are_named(project: Project) -> None:
    project.attempt(1, {"calc.py": HELPER})
    (project.root / "helper.py").write_text("def plus(a, b):\n    return a + b\n")
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    ended = atlas(project, "deliver", "--patch", "../fix.patch")
    assert "which are not delivered: helper.py" in ended.out
    assert b"helper.py" not in (project.root.parent / "fix.patch").read_bytes()


def test_a_failed_run_is_not_delivered(project: Project) -> None:
    assert atlas(project, "retry", ".").code == 1
    ended = atlas(project, "deliver", "--patch", "../fix.patch")
    assert (ended.code, "ended as failed" in ended.err) == (2, True)
    assert not (project.root.parent / "fix.patch").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "choose how to deliver the run"),
        (("--patch", "x", "--push"), "--push needs a branch"),
        (("--patch", "missing/x"), "No such file"),
        (("--branch", "a..b"), "cannot be the name"),
    ],
)
def test_invalid_arguments_are_refused(
    arguments: tuple[str, ...], why: str, project: Project
) -> None:
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    ended = atlas(project, "deliver", *arguments)
    assert ended.code == 2
    assert why in ended.err


@pytest.fixture
def remote(project: Project) -> Path:
    bare = project.root.with_name("remote.git")
    git(project.root, "clone", "-q", "--bare", ".", str(bare), environ=project.environ)
    git(project.root, "remote", "add", "origin", str(bare), environ=project.environ)
    return bare


def green(project: Project, text: str = FIXED) -> None:
    project.attempt(1, {"calc.py": text})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0


def test_a_branch_is_never_force_pushed(project: Project, remote: Path) -> None:
    green(project)
    assert atlas(project, "deliver", "--branch", "fix", "--push").code == 0
    assert git(remote, "log", "-1", "--format=%s", "fix", environ=project.environ) == (
        "Make test pass\n"
    )
    git(remote, "branch", "other", "main", environ=project.environ)
    other = clone(project, remote, "-b", "other")
    git(other, "commit", "-q", "--allow-empty", "-m", "theirs", environ=project.environ)
    git(other, "push", "-q", "origin", "other", environ=project.environ)
    ended = atlas(project, "deliver", "--branch", "other", "--push")
    assert (ended.code, "git push failed" in ended.err) == (3, True)


@pytest.mark.parametrize(("own", "code"), [(0, 1), (1, 0)])
def test_consecutive_runs_are_limited_until_a_person_commits(
    own: int, code: int, project: Project
) -> None:
    for number in range(2):
        git(
            project.root,
            *("commit", "-q", "--allow-empty", "-m", f"fix\n\nAtlas-Run: {number}"),
            environ=project.environ,
        )
    if own:
        git(project.root, "commit", "-q", "--allow-empty", "-m", "m", environ=project.environ)
    green(project)
    ended = atlas(project, "deliver", "--patch", "../p", "--max-pushes", "2")
    assert ended.code == code
    assert (project.root.parent / "p").exists() == (code == 0)


GH = """#!/bin/sh
echo "$*" >> {log}
case "$1 $2" in
  "pr view") cat {answer} 2>/dev/null || exit 1;;
  "pr create") cat > {body}; echo https://example.invalid/pr/1;;
  "api --paginate") cat {comments};;
  "api --method") cat > {body};;
esac
"""


@pytest.fixture
def desk(project: Project, remote: Path) -> Path:
    """A folder with a `gh` that writes down what it was asked."""
    assert remote
    folder = project.root.with_name("bin")
    folder.mkdir()
    names = {name: folder / name for name in ("log", "answer", "body", "comments")}
    (folder / "gh").write_text(GH.format(**names))
    (folder / "gh").chmod(0o755)
    project.environ["PATH"] = f"{folder}:{project.environ['PATH']}"
    green(project)
    return folder


def test_a_pull_request_describes_the_run(project: Project, desk: Path) -> None:
    ended = atlas(project, "deliver", "--pr")
    assert ended.code == 0, ended.err
    assert "https://example.invalid/pr/1" in ended.out
    assert "pr create --head atlas/" in (desk / "log").read_text()
    assert "failed -> passed" in (desk / "body").read_text()


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ("[]", "--method POST repos/{owner}/{repo}/issues/7/comments"),
        ("[3]\n[5]\n", "--method PATCH repos/{owner}/{repo}/issues/comments/5"),
    ],
)
def test_one_comment_is_updated_in_place(
    known: str, asked: str, project: Project, desk: Path
) -> None:
    answer = {"number": 7, "url": "u", "labels": [], "state": "OPEN"}
    (desk / "answer").write_text(json.dumps(answer))
    (desk / "comments").write_text(known)
    assert atlas(project, "deliver", "--branch", "fix", "--push").code == 0
    assert asked in (desk / "log").read_text()
    assert (desk / "body").read_text().startswith("<!-- atlas deliver -->")


def test_a_label_prevents_every_push(project: Project, desk: Path, remote: Path) -> None:
    answer = {"number": 7, "url": "u", "labels": [{"name": "no-auto-fix"}], "state": "OPEN"}
    (desk / "answer").write_text(json.dumps(answer))
    ended = atlas(project, "deliver", "--branch", "fix", "--push")
    assert (ended.code, "no-auto-fix" in ended.out) == (1, True)
    assert git(remote, "branch", "--list", "fix", environ=project.environ) == ""


def test_an_applied_patch_gives_the_same_tree_and_message(run: Project, remote: Path) -> None:
    assert atlas(run, "deliver", "--patch", "../fix.patch").code == 0
    assert atlas(run, "deliver", "--branch", "here").code == 0
    fresh = clone(run, remote)
    other = Project(root=fresh, script=run.script, environ=run.environ)
    ended = atlas(other, "deliver", "--apply", "../fix.patch", "--branch", "main", "--push")
    assert ended.code == 0, ended.err
    form = ("log", "-1", "--format=%T%n%B")
    there = git(remote, *form, "main", environ=run.environ)
    assert there == git(run.root, *form, "here", environ=run.environ)


@pytest.mark.parametrize(
    ("mail", "code", "why"),
    [
        ("", 3, "does not fit"),
        ("Subject: [PATCH] x\n\nno trailer\n---\n\n{diff}", 2, "no Atlas-Run in it"),
        ("Subject: [PATCH] x\n\nAtlas-Run: 1\n---\n\n{diff}", 0, ""),
        ("Subject: [PATCH] x\n\nAtlas-Run: 1\n---\n\n{other}", 3, "does not fit"),
    ],
)
def test_only_a_patch_that_fits_is_applied(
    mail: str, code: int, why: str, project: Project
) -> None:
    lines = "@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    c\n"
    diff = f"--- a/calc.py\n+++ b/calc.py\n{lines}"
    text = mail.replace("{diff}", diff).replace("{other}", diff.replace("a - b", "b - a"))
    (project.root.parent / "p").write_text(text)
    ended = atlas(project, "deliver", "--apply", "../p", "--branch", "new")
    assert ended.code == code, ended.out + ended.err
    assert why in ended.err


def test_gate_names_cannot_inject_markup_into_a_comment() -> None:
    text = comment("Make x pass\n\n- @all ```` <b> (lint): passed\n\nAtlas-Run: 1\n", "abc")
    assert "`````text\n- @all ```` <b>" in text
    assert text.endswith("Atlas-Run: 1\n`````\n")


def test_without_gh_a_pull_request_is_refused_with_an_alternative(
    project: Project, remote: Path
) -> None:
    assert remote
    green(project)
    ended = atlas(project, "deliver", "--pr")
    assert ended.code == 3
    assert "--branch NAME --push" in ended.err
    assert UNITTEST in (project.root / ".atlas/config.yaml").read_text()

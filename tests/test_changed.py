"""`atlas validate --changed` and `--staged`, `{files}`, and the recipes of docs/changed.md."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.needs import needs
from tests.programs import with_programs
from tests.projects import CALC, FIXED, Project, atlas, git
from tests.test_docs import blocks
from tests.tools import with_tools

PAGE = Path(__file__).parents[1] / "docs" / "changed.md"
SEEN = 'printf "%s\\n" {files}'


@pytest.fixture
def branch(project: Project) -> Project:
    """A branch without changes; each gate prints the files that it takes."""
    py = {"name": "py", "run": SEEN, "inputs": ["*.py", "setup.cfg"], "files": ["*.py"]}
    sub = {"name": "sub", "run": SEEN, "cwd": "sub", "files": ["*.txt"]}
    whole = {"name": "whole", "run": "echo all", "recheck": SEEN, "files": ["*.py"]}
    go = {"name": "go", "run": "echo go", "inputs": ["*.go"]}
    project.configure(validation={"lint": [py, sub], "test": [whole, go]})
    for path in ("sub/one.txt", "sub/two.txt", "three.txt", "setup.cfg"):
        (project.root / path).parent.mkdir(exist_ok=True)
        (project.root / path).write_text("1\n")
    project.commit()
    git(project.root, "switch", "-q", "-c", "mine", environ=project.environ)
    return project


def ran(project: Project, *flags: str) -> Mapping[str, list[str]]:
    """What each gate that ran printed, by its name."""
    done = atlas(project, "validate", "--json", *flags)
    assert done.code == 0, done.err
    document = json.loads(done.out)
    results = [*document["lint_results"], *document["test_results"]]
    return {r["name"]: r["stdout"].split("\n")[:-1] for r in results if r["status"] != "skipped"}


def test_without_a_change_in_question_a_gate_takes_all_its_files(branch: Project) -> None:
    assert ran(branch) == {
        "py": ["calc.py", "test_calc.py"],
        "sub": ["one.txt", "two.txt"],
        "whole": ["all"],
        "go": ["go"],
    }


CHANGES: dict[str, tuple[dict[str, str | None], dict[str, list[str]]]] = {
    "nothing": ({}, {}),
    "a source": ({"calc.py": FIXED}, {"py": ["calc.py"], "whole": ["calc.py"]}),
    "a new file": ({"new.py": ""}, {"py": ["new.py"], "whole": ["new.py"]}),
    "a deleted source": ({"calc.py": None}, {"whole": ["all"]}),
    "an input that is not taken": (
        {"setup.cfg": "2\n"},
        {"py": ["calc.py", "test_calc.py"], "whole": ["all"]},
    ),
    "a file in the folder": ({"sub/one.txt": "2\n"}, {"sub": ["one.txt"], "whole": ["all"]}),
    "a file outside the folder": ({"three.txt": "2\n"}, {"whole": ["all"]}),
    "an input of a gate without files": ({"x.go": ""}, {"go": ["go"], "whole": ["all"]}),
    "odd names": (
        {"-x.py": "", "a b.py": "", "$(id)'\".py": "", "ü.py": ""},
        {name: ["$(id)'\".py", "./-x.py", "a b.py", "ü.py"] for name in ("py", "whole")},
    ),
}


def change(project: Project, files: Mapping[str, str | None]) -> None:
    for path, text in files.items():
        if text is None:
            (project.root / path).unlink()
        else:
            (project.root / path).write_text(text)


@pytest.mark.parametrize("case", CHANGES)
@pytest.mark.parametrize("how", ["uncommitted", "committed", "staged"])
def test_only_gates_that_a_change_concerns_run_with_the_files_that_changed(
    case: str, how: str, branch: Project
) -> None:
    files, expected = CHANGES[case]
    change(branch, files)
    if how != "uncommitted":
        git(branch.root, "add", "-A", environ=branch.environ)
    if how == "committed" and files:
        git(branch.root, "commit", "-q", "-m", "change", environ=branch.environ)
    assert ran(branch, "--staged" if how == "staged" else "--changed") == expected


def test_of_a_renamed_file_the_new_name_is_taken(branch: Project) -> None:
    git(branch.root, "mv", "calc.py", "sum.py", environ=branch.environ)
    assert ran(branch, "--staged")["py"] == ["sum.py"]


def test_what_the_main_branch_did_since_is_no_change_of_mine(branch: Project) -> None:
    git(branch.root, "switch", "-q", "main", environ=branch.environ)
    change(branch, {"test_calc.py": ""})
    git(branch.root, "commit", "-q", "-a", "-m", "theirs", environ=branch.environ)
    git(branch.root, "switch", "-q", "mine", environ=branch.environ)
    change(branch, {"calc.py": FIXED})
    assert ran(branch, "--changed", "main")["py"] == ["calc.py"]


def test_unstaged_changes_are_not_staged_and_a_partly_staged_file_is_named(
    branch: Project,
) -> None:
    change(branch, {"calc.py": FIXED, "test_calc.py": ""})
    git(branch.root, "add", "calc.py", environ=branch.environ)
    change(branch, {"calc.py": CALC + "\n"})
    assert ran(branch, "--staged")["py"] == ["calc.py"]
    assert "these differ from what is staged: calc.py" in atlas(branch, "validate", "--staged").out


def test_a_rename_of_nothing_is_no_failure_and_says_how_many_gates_did_not_run(
    branch: Project,
) -> None:
    done = atlas(branch, "validate", "--changed", ".")
    assert done.code == 0
    assert "only what changed: 0 files since main" in done.err + done.out
    assert "4 gates did not run" in done.err + done.out


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--changed", "nope"), "there is no commit 'nope'"),
        (("--changed=main", "--staged"), "exclude each other"),
        (("--staged", "--receipt", "r.json"), "a receipt is for the whole project"),
    ],
)
def test_a_change_that_cannot_be_asked_about_is_refused(
    flags: tuple[str, ...], why: str, branch: Project
) -> None:
    done = atlas(branch, "validate", *flags)
    assert (done.code, why in done.err) == (2, True)


def test_an_unknown_main_branch_and_an_unrelated_one_say_what_to_type(branch: Project) -> None:
    git(branch.root, "branch", "-q", "-D", "main", environ=branch.environ)
    assert "atlas validate --changed REV" in atlas(branch, "validate", "--changed").err
    git(branch.root, "switch", "-q", "--orphan", "other", environ=branch.environ)
    git(branch.root, "commit", "-q", "--allow-empty", "-m", "x", environ=branch.environ)
    branch.configure()
    assert "git fetch --unshallow" in atlas(branch, "validate", "--changed", "mine").err


@pytest.mark.parametrize(
    ("line", "is_fine"),
    [
        ("x {files}", True),
        ('x "{files}"; y', True),
        ("(x {files})|y", True),
        ("x --only={files}", False),
        ("sh -c 'x {files}'", False),
    ],
)
def test_files_must_be_a_word_of_its_own(line: str, is_fine: bool, project: Project) -> None:
    project.configure(validation={"lint": [{"name": "a", "run": line}]})
    done = atlas(project, "config", "check")
    assert (done.code == 0) is is_fine, done.err
    assert is_fine or "{files} must be a word of its own" in done.err


def test_more_files_than_one_call_can_take_come_in_several_and_one_failure_counts(
    project: Project,
) -> None:
    count = 1_500
    for number in range(count):
        (project.root / f"{'n' * 200}-{number}.txt").write_text("")
    log = project.root.parent / "calls"
    line = f'set -- {{files}}; echo $# >> {log}; case "$*" in *-7.txt*) exit 1;; esac'
    gate = {"name": "many", "run": line, "files": ["*.txt"]}
    project.configure(validation={"lint": [gate]})
    assert atlas(project, "validate").code == 1
    calls = [int(line) for line in log.read_text().split()]
    assert (len(calls) > 1, sum(calls)) == (True, count)


def test_a_result_names_the_files_with_problems_so_that_its_command_can_be_typed(
    project: Project,
) -> None:
    for name in ("a b.py", "fine.py"):
        (project.root / name).write_text("")
    gate = {"name": "mine", "run": "echo 'a b.py:1:1: error: no'; false {files}", "files": ["*.py"]}
    project.configure(validation={"lint": [gate]})
    (result,) = json.loads(atlas(project, "validate", "--json").out)["lint_results"]
    assert result["command"] == "echo 'a b.py:1:1: error: no'; false 'a b.py'"


def test_a_pass_of_a_change_is_not_reused_for_the_whole(branch: Project) -> None:
    change(branch, {"calc.py": FIXED})
    ran(branch, "--changed")
    assert ran(branch, "--reuse")["py"] == ["calc.py", "test_calc.py"]


def test_a_run_ends_green_on_all_files_only(project: Project) -> None:
    lint = {"name": "plus", "run": "! grep -L ' + ' {files} | grep .", "files": ["*.py"]}
    (project.root / "also.py").write_text("x = 1 + 1\n")
    (project.root / "test_calc.py").unlink()
    project.configure(validation={"lint": [lint]})
    project.commit()
    project.attempt(1, {"calc.py": FIXED, "also.py": "x = 2\n"})
    project.attempt(2, {"also.py": "x = 3 + 4\n"})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    assert (project.root / "also.py").read_text() == "x = 3 + 4\n"


# --- the recipes -------------------------------------------------------------------------------


def _lefthook(project: Project) -> str:
    (text,) = (body for body in blocks(PAGE, "yaml") if "commands:" in body)
    (project.root / "lefthook.yml").write_text(text)
    return "lefthook install"


def _husky(project: Project) -> str:
    (text,) = (body for body in blocks(PAGE, "sh") if "--plain" in body)
    (project.root / ".husky").mkdir()
    (project.root / ".husky" / "pre-commit").write_text(text)
    return "husky"


def _pre_commit(project: Project) -> str:
    (text,) = (body for body in blocks(PAGE, "yaml") if "repos:" in body)
    (project.root / ".pre-commit-config.yaml").write_text(text)
    git(project.root, "add", ".", environ=project.environ)
    return "pre-commit install"


RECIPES = {"lefthook": _lefthook, "husky": _husky, "pre-commit": _pre_commit}


@pytest.mark.parametrize(
    "name", ["lefthook", pytest.param("husky", marks=needs("husky")), "pre-commit"]
)
def test_a_commit_is_refused_while_a_gate_that_it_concerns_fails(
    name: str, project: Project
) -> None:
    plus = {"name": "plus", "run": "grep -q ' + ' {files}", "files": ["calc.py"]}
    project.configure(validation={"lint": [plus]})
    project.commit()
    environ = with_programs(with_tools(project.environ), name, "node")
    identity = {
        f"GIT_{who}_{key}": "dev" for who in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
    }

    def sh(line: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ("sh", "-c", line),
            cwd=project.root,
            env=environ | identity,
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )

    installed = sh(RECIPES[name](project))
    assert installed.returncode == 0, installed.stderr
    (project.root / "other.txt").write_text("")
    assert sh("git add other.txt; git commit -m 'other'").returncode == 0
    (project.root / "calc.py").write_text(CALC + "\n")
    refused = sh("git commit -a -m 'still wrong'")
    assert (refused.returncode, "failed: plus" in refused.stdout + refused.stderr) == (1, True)
    (project.root / "calc.py").write_text(FIXED)
    accepted = sh("git commit -a -m 'right'")
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr


def test_the_gates_of_the_page_are_a_configuration(project: Project) -> None:
    (text,) = (body for body in blocks(PAGE, "yaml") if "shellcheck" in body)
    project.configure(**{k: v for k, v in yaml.safe_load(text).items() if k != "version"})
    assert atlas(project, "config", "check").code == 0

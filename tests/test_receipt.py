"""Receipts: a green that belongs to one tree and its gates, checked without running any."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas_retry.history import reviews
from atlas_retry.model import OpenReview
from tests.needs import require
from tests.programs import with_programs
from tests.projects import FIXED, UNITTEST, Ended, Project, atlas, git

RAN = "echo ran >> ../ran; "


@pytest.fixture
def green(project: Project) -> Project:
    project.configure(validation={"test": [f"{RAN}{UNITTEST}"]})
    (project.root / "calc.py").write_text(FIXED)
    project.commit()
    return project


def receipt(project: Project, *arguments: str) -> Ended:
    return atlas(project, "validate", "-q", "--receipt", "receipt.json", *arguments)


def test_a_receipt_is_verified_in_a_clone_without_running_gates(green: Project) -> None:
    assert receipt(green).code == 0
    clone = green.root.with_name("clone")
    git(green.root, "clone", "-q", ".", str(clone), environ=green.environ)
    ended = atlas(green, "verify", "../project/receipt.json", cwd=clone)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("verified: 1 gate passed on ")
    assert (green.root.parent / "ran").read_text() == "ran\n"


def test_a_receipt_names_the_tree_that_git_would_commit(green: Project) -> None:
    receipt(green)
    document = json.loads((green.root / "receipt.json").read_bytes())
    tree = git(green.root, "rev-parse", "HEAD^{tree}", environ=green.environ).strip()
    assert document["tree"] == tree
    assert document["schema"] == "atlas.receipt/1"
    (gate,) = document["gates"]
    assert gate["status"] == "passed"
    assert len(gate["digest"]) == 64
    assert document["guard"]["refused"] == []


def edit(name: str, text: str) -> Callable[[Project], object]:
    return lambda project: (project.root / name).write_text(text)


def forge(project: Project) -> None:
    file = project.root / "receipt.json"
    file.write_text(file.read_text().replace('"passed"', '"failed"', 1))


CHANGES = {
    "another tree": (edit("calc.py", FIXED + "# more\n"), "it is for the tree"),
    "a new file": (edit("new.py", ""), "it is for the tree"),
    "another gate": (
        lambda project: project.configure(validation={"test": [UNITTEST, "true"]}),
        "it has no pass of the gate true",
    ),
    "another verdict": (forge, "of a validation that failed"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_difference_from_the_receipt_is_named(name: str, green: Project) -> None:
    change, why = CHANGES[name]
    assert receipt(green).code == 0
    change(green)
    ended = atlas(green, "verify", "receipt.json")
    assert ended.code == 1
    assert why in ended.err


def test_the_receipt_of_a_failed_validation_is_not_verified(project: Project) -> None:
    assert receipt(project).code == 1
    ended = atlas(project, "verify", "receipt.json")
    assert (ended.code, "validation that failed" in ended.err) == (1, True)


def test_a_receipt_says_what_a_person_must_review(green: Project) -> None:
    review = OpenReview(rule="r", path="calc.py", line=2, run_id="RUN", attempt=1)
    hunk = reviews.Hunk(path="calc.py", start=2, added=("    return a + b",), removed=())
    home = Path(green.environ["ATLAS_HOME"])
    reviews.keep(home, green.root, [reviews.Question(review=review, hunks=(hunk,))])
    (green.root / "calc.py").write_text(FIXED.replace("a + b", "a + b  # sum"))
    receipt(green)
    ended = atlas(green, "verify", "receipt.json")
    assert ended.code == 1
    assert "not verified: a person must review calc.py:2 (r)" in ended.err


def test_a_receipt_with_a_refused_change_is_not_verified(green: Project) -> None:
    (green.root / "calc.py").write_text(FIXED + 'AWARE = "PYTEST_CURRENT_TEST"\n')
    assert receipt(green).code == 0
    ended = atlas(green, "verify", "receipt.json")
    assert (ended.code, "the guard refused calc.py" in ended.err) == (1, True)


def make_key(project: Project, file: Path) -> None:
    line = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file)
    subprocess.run(line, env=project.environ, check=True)


@pytest.fixture
def key(green: Project) -> Path:
    """A key, beside the list of those who may sign."""
    require("ssh-keygen")
    green.environ["PATH"] = with_programs(green.environ, "ssh-keygen")["PATH"]
    file = green.root.with_name("key")
    make_key(green, file)
    public = file.with_name("key.pub").read_text()
    file.with_name("signers").write_text(f'dev@example.invalid namespaces="atlas" {public}')
    return file


def test_a_signed_receipt_is_verified(green: Project, key: Path) -> None:
    assert receipt(green, "--sign", str(key)).code == 0
    ended = atlas(green, "verify", "receipt.json", "--signers", "../signers")
    assert ended.code == 0, ended.err
    assert ended.out.endswith("signed\n")


def another_key(project: Project, key: Path) -> None:
    key.unlink()
    make_key(project, key)
    receipt(project, "--sign", str(key))


def unsigned(project: Project, key: Path) -> None:
    assert key.exists()
    (project.root / "receipt.json.sig").unlink()


def altered(project: Project, key: Path) -> None:
    assert key.exists()
    file = project.root / "receipt.json"
    file.write_text(file.read_text().replace("python3", "python4", 1))


@pytest.mark.parametrize("doing", [another_key, unsigned, altered])
def test_a_signature_of_an_unlisted_signer_is_refused(
    doing: Callable[[Project, Path], None], green: Project, key: Path
) -> None:
    assert receipt(green, "--sign", str(key)).code == 0
    doing(green, key)
    ended = atlas(green, "verify", "receipt.json", "--signers", "../signers")
    assert ended.code == 1
    assert "sign" in ended.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("validate", "--sign", "k"), "--sign needs a receipt"),
        (("verify", "missing.json"), "No such file"),
        (("verify", "calc.py"), "is not a receipt"),
    ],
)
def test_invalid_arguments_are_refused(
    arguments: tuple[str, ...], why: str, project: Project
) -> None:
    ended = atlas(project, *arguments)
    assert (ended.code, why in ended.err) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("validate", "--receipt", "r.json", "--base", "origin/main"),
        ("guard", "--base", "origin/main"),
        ("workspace", "add", "api", "--from", "origin/main"),
    ],
)
def test_an_unknown_revision_of_a_flag_is_a_usage_error_before_any_gate(
    arguments: tuple[str, ...], project: Project
) -> None:
    project.configure(validation={"test": ["touch ran"]})
    ended = atlas(project, *arguments)
    assert (ended.code, "no commit 'origin/main'" in ended.err) == (2, True)
    assert not (project.root / "ran").exists()

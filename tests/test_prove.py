"""Which planted faults a gate notices, and that nothing of them stays."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from atlas_retry.events import Event, Notice
from atlas_retry.source.faults import PLANTED, mutants, planted
from atlas_retry.source.languages import language_of, parse
from tests.projects import CALC, FIXED, Project, atlas, git, make_project

ADDS = "def add(a, b):\n    return a + b\n\n\ndef is_big(n):\n    return n > 10\n"
NOTES = "import calc\n\ncalc.add(1, 2)\n"
COMPILES = "python3 -S -m py_compile calc.py"
HAS_NO_TODO = "! grep -rn atlas_undefined lib"


@pytest.fixture
def project(tmp_path: Path, environ: dict[str, str]) -> Project:
    """`make_project` with code that is right, in `calc.py` and `lib/`."""
    made = make_project(tmp_path, environ)
    (made.root / "calc.py").write_text(ADDS)
    (made.root / "lib").mkdir()
    (made.root / "lib" / "more.py").write_text(ADDS * 3)
    made.commit()
    return made


def proved(
    project: Project, *options: str, **validation: Sequence[object]
) -> tuple[int, list[dict]]:  # type: ignore[type-arg]
    """Exit code and the proofs of `atlas prove --json`."""
    project.configure(validation=validation)
    git(project.root, "add", "-A", environ=project.environ)
    git(project.root, "commit", "-q", "--allow-empty", "-m", "gates", environ=project.environ)
    ended = atlas(project, "prove", "--json", *options)
    assert git(project.root, "status", "--short", environ=project.environ) == ""
    return ended.code, json.loads(ended.out)["gates"]


@pytest.mark.parametrize(
    ("path", "source", "line", "what"),
    [
        ("a.py", ADDS, 2, "- for + in add"),
        ("a.py", "def g():\n    return True\n", 2, "False for True in g"),
        ("a.py", "def f(a):\n    if a:\n        a + 1\n    return 7\n", 3, "- for + in f"),
        ("a.py", "def f():\n    return 7\n", 2, "8 for 7 in f"),
        ("a.go", "package a\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n", 4, "- for + in Add"),
        ("a.rs", "fn add(a: i32) -> bool {\n    a == 1\n}\n", 2, "!= for == in add"),
        ("a.ts", "export const f = (x: boolean) => x && g;\n", 1, "|| for && in f"),
        ("A.java", "class A {\n  int f(a) {\n    return 3 + a;\n  }\n}\n", 3, "- for + in A.f"),
        ("a.c", "int f(int a) {\n  return a * 2;\n}\n", 2, "/ for * in f"),
        ("a.rb", "def f(a)\n  a >= 2\nend\n", 2, "< for >= in f"),
    ],
)  # fmt: skip
def test_a_function_gets_one_other_operator_or_constant(
    path: str, source: str, line: int, what: str
) -> None:
    faults = [fault for _, fault in mutants(path, source.encode())]
    assert (line, what) in [(fault.line, fault.what) for fault in faults]
    assert all(fault.content != source.encode() for fault in faults)


def test_a_sum_of_texts_is_no_operation_on_numbers() -> None:
    source = b"def f(a):\n    return 'x' + a\n"
    assert mutants("a.py", source) == ()


@pytest.mark.parametrize("suffix", [".py", ".js", ".ts", ".go", ".rs", ".java", ".c", ".rb"])
def test_what_is_planted_can_be_parsed(suffix: str) -> None:
    tree = parse(language_of(f"a{suffix}"), PLANTED[suffix].encode())
    assert tree is not None
    assert not tree.root_node.has_error


def test_nothing_is_planted_in_an_unknown_language() -> None:
    assert planted("a.txt", b"text\n") is None
    assert planted("a.py", b"x = 1\0\n") is None


def test_tests_that_notice_a_fault_are_no_blind_gate(project: Project) -> None:
    code, (proof,) = proved(project, test=["python3 -S -m unittest -q"])
    assert (code, proof["seen"] > 0, proof["tried"]) == (0, True, 5)
    assert "calc.py:6: <= for > in is_big" in proof["unseen"]


@pytest.mark.parametrize("line", ["python3 -S notes.py", "python3 -S -m unittest -q; echo done"])
def test_tests_that_notice_nothing_are_named_with_each_fault(project: Project, line: str) -> None:
    (project.root / "notes.py").write_text(NOTES)
    code, (proof,) = proved(project, "--faults", "2", test=[{"run": line, "exit_code": "trust"}])
    assert (code, proof["seen"], proof["tried"], len(proof["unseen"])) == (1, 0, 2, 2)


def test_a_fault_that_one_suite_notices_is_none_that_another_misses(project: Project) -> None:
    suites = ["python3 -S -m unittest -q", {"name": "slow", "run": "python3 -S test_calc.py"}]
    _, proofs = proved(project, test=suites)
    assert proofs[0]["unseen"] == proofs[1]["unseen"]


def test_a_linter_of_another_folder_is_blind(project: Project) -> None:
    code, (proof,) = proved(project, lint=["! grep -rn atlas_undefined test_calc.py"])
    assert (code, proof["seen"]) == (1, 0)
    assert proof["unseen"] == ["lib/more.py:20: an unknown name and a wrong type"]


def test_a_linter_that_sees_the_code_can_fail(project: Project) -> None:
    code, (proof,) = proved(project, lint=[HAS_NO_TODO])
    assert (code, proof["seen"], proof["unseen"]) == (0, 1, [])


def test_two_linters_that_share_the_folders_are_both_sound(project: Project) -> None:
    code, proofs = proved(project, lint=[HAS_NO_TODO, "! grep -n atlas_undefined *.py"])
    assert (code, [proof["not_covered"] for proof in proofs]) == (0, [["./"], ["lib/"]])


def test_a_formatter_that_corrects_the_fault_has_noticed_it(project: Project) -> None:
    line = "sed -i 's/atlas_undefined/x/' lib/*.py"
    code, (proof,) = proved(project, format=[line])
    assert (code, proof["seen"]) == (0, 1)


def test_a_gate_that_fails_already_is_not_tried(project: Project) -> None:
    code, (proof,) = proved(project, lint=["false"])
    assert (code, proof["why_not"]) == (3, "it is failed without a fault")


def test_changed_functions_come_first(project: Project) -> None:
    project.configure(validation={"test": ["true"]})
    project.commit()
    (project.root / "lib" / "more.py").write_text(ADDS + "\n\ndef new(a):\n    return a * 2\n")
    ended = atlas(project, "prove", "--faults", "1")
    assert "planted lib/more.py:2: - for + in add" in ended.out
    assert ended.code == 1


def test_the_screen_names_each_blind_gate_and_what_it_missed(project: Project) -> None:
    project.configure(validation={"lint": ["true"], "test": ["python3 -S -m unittest -q"]})
    project.commit()
    out = atlas(project, "prove", "--faults", "1").out
    assert "BLIND: `true` noticed none of 1" in out
    assert "still passes with lib/more.py:20: an unknown name and a wrong type" in out
    assert CALC not in out


UNTESTED = "\n\ndef double(n):\n    return n * 2\n"


@pytest.mark.parametrize(
    ("prove", "fix", "unproven"),
    [
        ("changed", FIXED, ()),
        ("changed", FIXED + UNTESTED, ("calc.py:6: / for * in double",)),
        ("off", FIXED + UNTESTED, ()),
    ],
)
def test_faults_in_what_a_fix_touched_that_no_test_notices_are_named(
    prove: str, fix: str, unproven: tuple[str, ...], tmp_path: Path, environ: dict[str, str]
) -> None:
    project = make_project(tmp_path, environ)
    project.configure(retry={"prove": prove})
    project.commit()
    project.attempt(1, {"calc.py": fix})
    events: list[Event] = []
    outcome = project.retry(events)
    assert outcome.verdict == "fixed"
    assert outcome.unproven == unproven
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert all(f"no test fails with {fault}" in notices for fault in unproven)
    assert (project.root / "calc.py").read_text() == fix


def test_functions_that_a_fix_did_not_touch_get_no_fault(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    project = make_project(tmp_path, environ)
    (project.root / "calc.py").write_text(CALC + UNTESTED)
    project.configure(retry={"prove": "changed"})
    project.commit()
    project.attempt(1, {"calc.py": FIXED + UNTESTED})
    assert project.retry().unproven == ()

"""The mechanisms one by one: rulings, growth, renames, suppressions, literals, rules on sources."""

import pytest
from msgspec.structs import replace

from atlas_retry import guard
from atlas_retry.guard import Case, beside, ratchet, rulings, sources
from atlas_retry.guard.case import OutsideChange, Tool, scene
from atlas_retry.model import AnswerWord, Diagnostic, GateResult, Kind, Region, Verdict
from atlas_retry.source import tokens
from atlas_retry.text.units import bounded
from tests.guardcases import MYPY, PYTEST, RUFF, MemoryTree, answers, case, failed, judged

PY, T = "app.py", "tests/test_a.py"
TEST = "from app import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"


def ruling(change: Case) -> guard.Ruling:
    (one,) = rulings(change)
    return one


# --- rulings --------------------------------------------------------------------------------------

RULINGS = [
    (case({T: TEST}, {T: TEST + "\n"}), "grown: the same, reformatted or renamed"),
    (case({T: TEST}, {T: TEST + "\n\ndef test_b():\n    assert add(0, 0) == 0\n"}), "grown"),
    (case({T: TEST}, {T: "x = 1\n"}, allow=("tests/",)), "allowed"),
    (replace(case({T: TEST}, {T: "x = 1\n"}), ignored=frozenset({T})), "ignored by git: a green is confirmed without"),
    (replace(case({"a.log": "1"}, {"a.log": "2"}), outputs=frozenset({"a.log"})), "attribution: gates write it"),
    (replace(case({T: TEST}, {T: "x = 1\n"}), outputs=frozenset({T})), "decides: test-changed"),
    (case({"ruff.toml": "a = 1\n"}, {"ruff.toml": "a=1\n"}), "grown: the same, reformatted or renamed"),
    (case({}, {"ruff.toml": "a=1\n"}), "decides: settings-changed"),
    (case({"ruff.toml": "a = 1\n"}, {"ruff.toml": ""}), "decides: settings-changed"),
    (case({"Makefile": "a:\n"}, {"Makefile": "a:\n"}, new_modes={"Makefile": "100755"}), "decides: recipe-changed"),
    (case({PY: "x = 1\n"}, {PY: "x = 1  # noqa\n"}), "ratchet"),
    (case({"package.json": "{}"}, {"package.json": '{"dependencies": {"a": "1"}}'}), "settings: dependency-added"),
    (case({PY: "x = 1\n"}, {PY: 'x = "JEST_WORKER_ID"\n'}), "sources: test-aware"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "mechanism"), RULINGS)
def test_the_first_matching_mechanism_decides(change: Case, mechanism: str) -> None:
    assert ruling(change).mechanism == mechanism


def test_protected_paths_cannot_be_allowed() -> None:
    change = replace(case({T: TEST}, {T: "x = 1\n"}, allow=("tests/",)), protect=(T,))
    assert answers(guard.assess(change)) == {"refused": {"protected-path"}}


def test_a_refused_path_is_judged_only_once() -> None:
    change = replace(case({T: TEST}, {T: "x = 1\n"}), protect=(T,), in_run=True)
    assert [r.mechanism for r in rulings(change)] == ["beside: protected-path"]


@pytest.mark.parametrize(
    "change",
    [
        replace(case({}, {}), outside=(OutsideChange(place="/h", path="x"),), allow=("/h/x",)),
        replace(case({}, {}), installed=("node_modules/a.js",), allow=("node_modules/",)),
    ],
)
def test_findings_outside_the_change_can_be_allowed(change: Case) -> None:
    assert answers(guard.assess(change)) == {}
    assert answers(guard.assess(replace(change, allow=("other",))))


@pytest.mark.parametrize(
    "change",
    [
        replace(case({}, {}), nested=("a/.git",), allow=("a/",)),
        replace(case({}, {"atlas.yaml": "1\n"}), allow=("atlas.yaml",), in_run=True),
    ],
)
def test_some_findings_cannot_be_allowed(change: Case) -> None:
    assert "refused" in answers(guard.assess(change))


ENDS = [
    (replace(case({}, {}), nested=("a/.git",)), None, Verdict.REJECTED),
    (replace(case({}, {}), outside=(OutsideChange(place="/h", path="x"),)), None, Verdict.REJECTED),
    (replace(case({}, {}), tools=(Tool(name="x", path=""),)), None, Verdict.REJECTED),
    (replace(case({}, {}), git_before={"HEAD": "1"}, git_after={}), None, None),
    (replace(case({}, {}), installed=("node_modules/a.js",)), None, Verdict.REJECTED),
    (case({PY: "x = 1\n"}, {PY: 'x = "JEST_WORKER_ID"\n'}), None, None),
    (case({T: TEST, "ruff.toml": "a = 1\n"}, {T: "x = 1\n", "ruff.toml": "a = 2\n"}), ("ruff.toml", T), None),
]  # fmt: skip


@pytest.mark.parametrize(("change", "restore", "ends"), ENDS)
def test_a_finding_that_cannot_be_restored_ends_the_run(
    change: Case, restore: tuple[str, ...] | None, ends: Verdict | None
) -> None:
    judgement = guard.assess(change)
    assert (judgement.restore, judgement.ends) == (restore, ends)


def test_a_change_of_a_manifest_excuses_no_other_unrestorable_finding() -> None:
    change = replace(case({"package.json": "{}"}, {"package.json": '{"name": "a"}'}),
                     installed=("node_modules/a.js",), nested=("a/.git",), changed=("package.json",))  # fmt: skip
    assert guard.assess(change).ends is Verdict.REJECTED


@pytest.mark.parametrize("size", [200, 400])
def test_a_detail_has_at_most_300_characters(size: int) -> None:
    name = "y" * (size - len("is now a link out of the workspace: /"))
    (one,) = judged({}, {"a": f"->/{name}"}).refused
    reason = next(rule.reason for rule in beside.RULES if rule.name == "outside-workspace")
    whole = f"is now a link out of the workspace: /{name} ({reason})"
    assert one.detail == bounded(whole, 300)


def test_a_detail_has_no_control_characters() -> None:
    (one,) = judged({}, {"a": "->../\x1b[2J"}).refused
    assert one.detail.startswith("is now a link out of the workspace: ../ [2J")


def complained(kind: Kind, *regions: tuple[int, int | None]) -> GateResult:
    diagnostics = tuple(
        Diagnostic(tool="t", message="m", path=T, region=Region(start_line=a, end_line=b))
        for a, b in regions
    )
    return replace(failed("check", kind), diagnostics=diagnostics)


LINTED = (
    "import os\nfrom app import add\n\n\ndef test_add():\n    x = 1\n    assert add(1, 2) == 3\n"
)
UNUSED = LINTED.replace("import os\n", "")
NO_X = LINTED.replace("    x = 1\n", "    y = 1\n")


@pytest.mark.parametrize(
    ("after", "failing", "kept"),
    [
        (UNUSED, complained(Kind.LINT, (1, None)), True),
        (UNUSED, complained(Kind.FORMAT, (1, None)), True),
        (UNUSED, complained(Kind.CUSTOM, (1, None)), True),
        (UNUSED, complained(Kind.TEST, (1, None)), False),
        (UNUSED, complained(Kind.BUILD, (1, None)), False),
        (UNUSED, complained(Kind.REVIEW, (1, None)), False),
        (UNUSED, complained(Kind.LINT, (2, None)), False),
        (UNUSED, complained(Kind.LINT), False),
        (NO_X, complained(Kind.LINT, (2, 6)), True),
        (NO_X, complained(Kind.LINT, (2, 5)), False),
        (NO_X, complained(Kind.LINT, (2, None), (6, None)), True),
        (LINTED.replace("x = 1", "x = 2"), complained(Kind.LINT, (6, None)), False),
        (LINTED.replace("== 3", "== 4"), complained(Kind.LINT, (7, None)), False),
        ("import os\n", complained(Kind.LINT, (1, 7)), False),
        ("(", complained(Kind.LINT, (1, 7)), False),
    ],
)
def test_a_lint_fix_in_a_test_must_stay_on_the_reported_lines(
    after: str, failing: GateResult, kept: bool
) -> None:
    judgement = judged({T: LINTED}, {T: after}, failing)
    assert answers(judgement) == ({} if kept else {"held": {"test-changed"}})
    if kept:
        assert judgement.as_before == {T: ("100644", LINTED.encode())}


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [("got %d", "got %q", True), ("got %5.2f", "got %v", True), ("got %d", "has %d", False)],
)
def test_a_vet_fix_of_a_format_in_a_test_is_kept(old: str, new: str, kept: bool) -> None:
    text = f'func TestA(t *testing.T) {{\n\tif f() != 1 {{\n\t\tt.Errorf("{old}", f())\n\t}}\n}}\n'
    before, after = f"package a\n\n{text}", f"package a\n\n{text.replace(old, new)}"
    vet = failed("go vet ./...", Kind.LINT, ("a_test.go", 5))
    judgement = judged({"a_test.go": before}, {"a_test.go": after}, vet)
    assert answers(judgement) == ({} if kept else {"held": {"test-changed"}})


# --- growth ---------------------------------------------------------------------------------------

B = "tests/test_b.py"
ADDED = [
    (B, "def test_b():\n    assert 1\n", True),
    ("tests/conftest.py", "x = 1\n", False),
    ("tests/deep/__init__.py", "", False),
    ("tests/jest.setup.ts", "x\n", False),
    ("tests/setup.js", "x\n", False),
    ("tests/spec_helper.rb", "x\n", False),
    ("tests/rails_helper.rb", "x\n", False),
    ("tests/test_helper.rb", "x\n", False),
    ("tests/a.config.js", "x\n", False),
    ("tests/a.ini", "x\n", False),
    ("tests/bootstrap.php", "x\n", False),
    ("tests/package.json", "{}", False),
    ("tests/go.mod", "x\n", False),
    ("tests/pytest_more.py", "x = 1\n", False),
    ("tests/more_plugin.py", "x = 1\n", False),
    ("tests/a.json", "{}", True),
    ("tests/known.json", "{}", False),
    ("main_test.go", "package a\n\nfunc TestMain(m *testing.M) {}\n", False),
    ("init_test.go", "package a\n\nfunc init() {}\n", False),
    ("spec/b_spec.rb", "RSpec.configure { }\n", False),
    ("tests/a/b/mod.py", "x = 1\n", False),
    ("tests/test_a.js", "x\n", False),
    ("tests/known.json", "", False),
    ("tests/empty.json", "", True),
    ("tests/link.txt", "->test_a.py", False),
    ("tests/run.sh", "echo\n", True),
]  # fmt: skip


@pytest.mark.parametrize(("path", "content", "kept"), ADDED)
def test_new_tests_and_data_are_kept_unless_they_affect_others(
    path: str, content: str, kept: bool
) -> None:
    there = {T: TEST + "\nopen('known.json')\n", "src/a/b/mod.py": "x = 1\n"}
    after = {path: content or b""}
    change = case(there, {})
    tree = MemoryTree({**there, **after}, {"tests/run.sh": "100755"})
    judgement = guard.assess(replace(change, after=tree, changed=(path,)))
    assert ("held" not in answers(judgement)) is kept
    assert not kept or judgement.as_before == {path: None}


GROWTH = [
    ("row-of-call", "t.py", "@p.parametrize('a', [f(1)])\ndef test(a):\n    g(a)\n", "[f(1)]", "[f(1), f(2)]", True),
    ("plain-row", "t.py", "A = [1, 2]\ndef test():\n    f(A)\n", "[1, 2]", "[1, 2, 3]", False),
    ("first-row", "t.py", "A = []\ndef test():\n    f(A)\n", "[]", "[(1, 2)]", False),
    ("argument", "t.py", "def test():\n    assert f(1) == 2\n", "f(1)", "f(1, (2, 3))", False),
    ("other-kind", "t.py", "A = [(1, 2)]\n", "(1, 2)]", "(1, 2), f(3)]", False),
    ("fresh-name", "t.py", "def test():\n    f()\n", "f()\n", "f()\n\n\nX = 1\n", True),
    ("used-name", "t.py", "def test():\n    f()\n", "f()\n", "f()\n\n\nf = 1\n", False),
    ("attribute", "t.py", "def test():\n    f()\n", "f()\n", "f()\n\n\na.b = 1\n", False),
    ("dunder", "t.py", "def test():\n    f()\n", "f()\n", "f()\n\n\n__all__ = ()\n", False),
    ("pytestmark", "t.py", "def test():\n    f()\n", "f()\n", "f()\n\n\npytest_plugins = ()\n", False),
    ("call", "t.py", "def test():\n    f()\n", "f()\n", "f()\n\n\nh()\n", False),
    ("loop", "t.py", "def test():\n    f()\n", "f()\n", "f()\n\n\nfor x in y:\n    pass\n", False),
    ("step", "t.py", "def test():\n    assert f()\n", "    assert f()", "    g()\n    assert f()", False),
    ("step-of-a-method", "t.py", "context = 1\n\n\nclass TestA:\n    def test(self):\n        f()\n", "        f()", "        y = 1\n        f()", False),
    ("assertion", "t.py", "def test():\n    f()\n", "f()\n", "f()\n    self.assertTrue(x)\n", True),
    ("expected-failure", "t.py", "def test():\n    f()\n", "f()\n", "f()\n\n\n@expectedFailure\ndef test_b():\n    f()\n", False),
    ("late-skip", "t.py", "def test():\n    f()\n", "f()\n", f"f()\n\n\ndef test_b():\n    x = '{'y' * 200}'\n    skip()\n", True),
    ("class", "t.py", "def test():\n    f()\n", "f()\n", "f()\n\n\nclass TestB:\n    x = 1\n", True),
    ("order", "t.py", "def a():\n    f()\n\n\ndef b():\n    g()\n", "def a():\n    f()\n\n\ndef b():\n    g()\n", "def b():\n    g()\n\n\ndef a():\n    f()\n", False),
    ("import-star", "t.py", "import a\n", "import a\n", "import a\nfrom b import *\n", False),
    ("import-removed", "t.py", "import a\nimport b\n", "import b\n", "", False),
    ("import-alias", "t.py", "import a\nx = y\n", "import a\n", "import a\nimport z as y\n", False),
    ("js-require", "t.js", "const a = require('a')\nit('x', () => { f() })\n", "const a", "const b = require('b')\nconst a", True),
    ("js-each", "t.js", "it.each([[1, 2]])('x', (a) => { f(a) })\n", "[[1, 2]]", "[[1, 2], [3, 4]]", True),
    ("js-focus", "t.js", "it('x', () => { f() })\n", "it(", "fit('y', () => {})\nit(", False),
    ("js-expect", "t.js", "it('x', () => { f() })\n", "f()", "f(); expect(x).toBe(1)", True),
    ("js-sets-up", "t.js", "it('x', () => { f() })\n", "it(", "afterAll(() => {})\nit(", False),
    ("ruby-let", "t_spec.rb", "describe 'x' do\n  it 'y' do\n    f\n  end\nend\n", "  it 'y'", "  let!(:a) { 1 }\n  it 'y'", False),
    ("ruby-it", "t_spec.rb", "describe 'x' do\n  it 'y' do\n    f\n  end\nend\n", "  it 'y'", "  it 'z' do\n    g\n  end\n  it 'y'", True),
    ("rust-ignore", "t.rs", "#[test]\nfn a() { f(); }\n", "#[test]\nfn a", "#[ignore]\n#[test]\nfn b() {}\n#[test]\nfn a", False),
    ("rust-ignored-unless", "t.rs", "#[test]\nfn a() { f(); }\n", "fn a", '#[cfg_attr(not(feature = "x"), ignore)]\nfn a', False),
    ("rust-may-panic", "t.rs", "#[test]\nfn a() { f(); }\n", "fn a", "#[should_panic]\nfn a", False),
    ("rust-new-attribute", "t.rs", "#[test]\nfn a() { f(); }\n", "#[test]\nfn a", "// why\n#[test]\n#[should_panic]\nfn b() { g(); }\n\n#[test]\nfn a", True),
    ("rust-new-ignored-unless", "t.rs", "#[test]\nfn a() { f(); }\n", "#[test]\nfn a", "#[test]\n#[cfg_attr(x, ignore)]\nfn b() { g(); }\n\n#[test]\nfn a", False),
    ("rust-helper", "t.rs", "fn near(a: f64) { assert!(a > 1.0); }\n#[test]\nfn a() { near(f()); }\n", "near(f());", "near(f()); near(g());", True),
    ("rust-no-helper", "t.rs", "fn near(a: f64) { g(a); }\n#[test]\nfn a() { near(f()); }\n", "near(f());", "near(f()); near(g());", False),
    ("c-test", "t_test.c", "static void a(void) { CHECK(f() == 1); }\nint main(void) { a(); return 0; }\n", "int main(void) { a();", "static void b(void) { CHECK(g() == 1); }\nint main(void) { a(); b();", True),
    ("c-proves-nothing", "t_test.c", "static void a(void) { CHECK(f() == 1); }\nint main(void) { a(); return 0; }\n", "int main(void) { a();", "static void b(void) { g(); }\nint main(void) { a(); b();", False),
    ("c-used-name", "t_test.c", "static void a(void) { CHECK(f() == 1); }\nint main(void) { a(); return 0; }\n", "int main", "static void f(void) { CHECK(1); }\nint main", False),
    ("c-return", "t_test.c", "static void a(void) { CHECK(f() == 1); }\nint main(void) { a(); return 0; }\n", "a();", "return 0; a();", False),
    ("go-if", "t_test.go", "package a\n\nfunc TestA(t *testing.T) {\n\tcheck(t, f())\n}\n", "f())\n", 'f())\n\tif d := g(); d != 1 {\n\t\tt.Fatalf("%d", d)\n\t}\n', True),
    ("go-if-else", "t_test.go", "package a\n\nfunc TestA(t *testing.T) {\n\tcheck(t, f())\n}\n", "f())\n", "f())\n\tif d := g(); d != 1 {\n\t\treturn\n\t}\n", False),
    ("go-fatal", "t_test.go", "package a\n\nfunc TestA(t *testing.T) {\n\tcheck(t, f())\n}\n", "f())\n", "f())\n\tt.Fatal()\n", True),
    ("cpp", "t_test.cpp", "TEST(A, B) { EXPECT_EQ(f(), 1); }\n", "1); }\n", "2); }\n", False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "kept"),
    [row[1:] for row in GROWTH],
    ids=[row[0] for row in GROWTH],
)
def test_additions_are_kept_only_if_all_earlier_tests_stay(
    name: str, text: str, old: str, new: str, kept: bool
) -> None:
    path = f"tests/{name}"
    judgement = judged({path: text}, {path: text.replace(old, new, 1)})
    assert answers(judgement) == ({} if kept else {"held": {"test-changed"}})
    if kept:
        assert judgement.as_before == {path: ("100644", text.encode())}


RENAMES = [
    ({PY: "def plus(a, b):\n    return a + b\n"}, {}, True),
    ({PY: "def plus(a, b):\n    return a + b\n\n\nadd = plus\n"}, {}, False),
    ({PY: "def plus(a, b):\n    return a + b\n"}, {"other.py": "def add():\n    pass\n"}, False),
    ({PY: "def plus(a, b):\n    return a + b\n"}, {"other.py": "adder = 1\n"}, True),
    ({PY: "def plus(a, b):\n    return a + b\n"}, {"README.md": "add\n"}, True),
    ({PY: "def minus(a, b):\n    return a + b\n"}, {}, False),
    ({PY: "def minus(a, b):\n    return a + b\n"}, {"other.py": "def plus():\n    pass\n"}, True),
]


@pytest.mark.parametrize(("after", "others", "kept"), RENAMES)
def test_a_renamed_name_is_followed_only_if_no_source_defines_it(
    after: dict[str, str], others: dict[str, str], kept: bool
) -> None:
    there = {PY: "def add(a, b):\n    return a - b\n", T: TEST, **others}
    followed = TEST.replace("import add", "import plus").replace(" add(", " plus(")
    judgement = judged(there, {**after, T: followed})
    assert ("held" not in answers(judgement)) is kept


def test_additions_to_a_renamed_test_are_verified_with_the_new_names() -> None:
    there = {PY: "def add(a, b):\n    return a - b\n", T: TEST}
    more = "\n\ndef test_more():\n    assert plus(2, 2) == 4\n"
    followed = TEST.replace(" add", " plus")
    judgement = judged(there, {PY: "def plus(a, b):\n    return a + b\n", T: followed + more})
    assert judgement.as_before == {T: ("100644", followed.encode())}


# --- inline tests ---------------------------------------------------------------------------------

RUST = "fn add() {}\n\n#[test]\nfn one() { assert!(add() == 1); }\n\n// why\n#[cfg(test)]\nmod tests { fn two() {} }\n"
INLINE = [
    ("lib.rs", RUST, RUST.replace("== 1", "== 2"), RUST, 4),
    ("lib.rs", RUST, RUST.replace("fn add() {}", "fn sub() {}").replace("== 1", "== 2"), RUST.replace("fn add() {}", "fn sub() {}"), 4),
    ("lib.rs", RUST, RUST.partition("// why")[0], None, 4),
    ("lib.rs", RUST, "fn add() {}\n", None, None),
    ("lib.rs", RUST, RUST.replace("fn add() {}", "fn add() { f() }"), "", None),
    ("lib.rs", RUST, RUST + "#[tokio::test]\nfn three() {}\n", "", None),
    ("lib.rs", "#[tokio::test]\nfn a() { f(1); }\n", "#[tokio::test]\nfn a() { f(2); }\n", "#[tokio::test]\nfn a() { f(1); }\n", 2),
    ("lib.rs", "#[cfg(all(test, x))]\nmod t { fn a() { f(1); } }\n", "#[cfg(all(test, x))]\nmod t { fn a() { f(2); } }\n", "#[cfg(all(test, x))]\nmod t { fn a() { f(1); } }\n", 2),
    ("lib.rs", "#[cfg(test)]\nmod t { fn a() { f(1); } }\n", "#[cfg(all(test, x))]\nmod t { fn a() { f(1); } }\n", "#[cfg(test)]\nmod t { fn a() { f(1); } }\n", 2),
    ("lib.rs", "#[test]\nfn a() { f(1); }\n", "#[test]\n#[ignore]\nfn a() { f(1); }\n", "#[test]\nfn a() { f(1); }\n", 3),
    ("lib.rs", "#[cfg(feature)]\nmod t { fn a() { f(1); } }\n", "#[cfg(feature)]\nmod t { fn a() { f(2); } }\n", "", None),
    ("src/a.ts", "f(1)\nif (import.meta.vitest) { f(1) }\n", "f(2)\nif (import.meta.vitest) { f(2) }\n", "f(2)\nif (import.meta.vitest) { f(1) }\n", 2),
    ("src/a.ts", "f(1)\nif (x) { f(1) }\n", "f(2)\nif (x) { f(2) }\n", "", None),
]  # fmt: skip


@pytest.mark.parametrize(("path", "before", "after", "left", "line"), INLINE)
def test_changed_inline_tests_are_restored_or_need_review(
    path: str, before: str, after: str, left: str | None, line: int | None
) -> None:
    judgement = judged({path: before}, {path: after})
    if left == "":
        assert judgement.held == ()
        return
    held = next(one for one in judgement.held if one.rule == "inline-test-changed")
    assert (held.line, held.in_place) == (line, left is None)
    written = judgement.rewrite.get(path)
    assert (written[1].decode() if written else None) == left
    assert path not in (judgement.restore or ())


@pytest.mark.parametrize(
    ("moved_to", "rules"), [({}, ("inline-test-changed",)), ({"b.rs": RUST + "fn more() {}\n"}, ())]
)
def test_inline_tests_of_a_deleted_source_are_reported(
    moved_to: dict[str, str], rules: tuple[str, ...]
) -> None:
    judgement = judged({"a.rs": RUST}, {"a.rs": "", **moved_to})
    assert tuple(held.rule for held in judgement.held) == rules


DOC = '"""M.\n\n>>> f(1)\n1\n"""\n\n\nclass A:\n    def g(self):\n        """G.\n\n        >>> g(1)\n        2\n        """\n        return 1\n'
DOCTESTS = [
    (DOC.replace("\n1\n", "\n9\n"), DOC),
    (DOC.replace("        2\n", "        9\n").replace("return 1", "return 3"), DOC.replace("return 1", "return 3")),
    (DOC.replace(">>> f(1)\n1\n", "").replace("        >>> g(1)\n        2\n", ""), None),
    (DOC.replace("def g", "def h").replace("        2\n", "        9\n"), DOC.replace("def g", "def h")),
    (DOC.replace('        """G.\n\n        >>> g(1)\n        2\n        """\n', ""), None),
    (DOC.replace("return 1", "return 2"), ""),
    (DOC.replace("class A", "class B"), ""),
    (DOC.replace("\n1\n", "\n1\n>>> f(2)\n2\n"), ""),
    (DOC.replace(">>> f(1)\n1\n", ">>> f(1)\nnine\n"), DOC),
    (DOC.replace(">>> f(1)", ">>> x(1)"), DOC),
    (DOC.replace("\n1\n", "\n9\n").replace("return 1", "return ("), DOC.replace("return 1", "return (")),
    (DOC.replace(">>> f(1)", ">>> f(1)  # doctest: +SKIP"), DOC),
    (DOC.replace("        2\n", "        9\n\n        >>> g(2)\n        2\n"), None),
    ("def (", None),
]  # fmt: skip


@pytest.mark.parametrize(("after", "left"), DOCTESTS)
@pytest.mark.parametrize("where", ["command", "conftest.py", "pyproject.toml"])
def test_docstring_examples_run_by_gates_are_restored_in_the_new_source(
    after: str, left: str | None, where: str
) -> None:
    there = {PY: DOC, "conftest.py": "\n", "pyproject.toml": "\n"}
    configuration = {} if where == "command" else {where: "# doctest\n"}
    command = failed("pytest --xdoctest" if where == "command" else "pytest")
    judgement = judged({**there, **configuration}, {PY: after}, command)
    held = [h.in_place for h in judgement.held]
    assert held == ([] if left == "" else [left is None])
    written = judgement.rewrite.get(PY)
    assert (written[1].decode() if written else None) == (left or None)


# --- suppressions ---------------------------------------------------------------------------------

MARKS = {
    "lint": """
        # noqa|# ruff: noqa|# flake8: noqa|# pylint: disable=x|# pylint: skip-file|// eslint-disable
        // tslint:disable|// oxlint-disable|/* stylelint-disable */|// jshint ignore:line
        // biome-ignore x|// deno-lint-ignore|/* eslint no-x: 0 */|/* eslint no-x: "off" */|//nolint
        // NOLINTNEXTLINE|//lint:ignore x|// NOSONAR|// NOPMD|// CHECKSTYLE:OFF|//noinspection x
        # shellcheck disable=x|# rubocop:disable x|# rubocop:todo x|// phpcs:ignore
        // swiftlint:disable x|// ktlint-disable|# yamllint disable|//go:build x|// cspell:ignore x
        """,
    "type": """
        # type: ignore|# mypy: ignore-errors|# mypy: disable-error-code=x|# pyright: ignore
        # pyright: basic|# pyright: reportX=false|# basedpyright: ignore|# pyre-ignore|# pyre-fixme
        # pytype: disable=x|# ty: ignore|// @ts-ignore|// @ts-expect-error|// @ts-nocheck
        // @phpstan-ignore-line|/* @psalm-suppress x */
        """,
    "coverage": """
        # pragma: no cover|# pragma: no branch|# nocover|// LCOV_EXCL_LINE|// GCOVR_EXCL_LINE
        # :nocov:|/* istanbul ignore next */|/* c8 ignore next */|/* v8 ignore next */
        /* node:coverage disable */|// @codeCoverageIgnore
        """,
    "format": """
        # fmt: off|# fmt: skip|# yapf: disable|# isort: skip|// prettier-ignore|// dprint-ignore
        // clang-format off|// @formatter:off
        """,
    "sanitizer": "//go:norace",
    "security": "# nosec|# nosemgrep|# gitleaks:allow|# checkov:skip=x|# tfsec:ignore:x",
}
REMARKS = [
    (kind, mark.strip())
    for kind, text in MARKS.items()
    for row in text.strip().splitlines()
    for mark in row.split("|")
]


@pytest.mark.parametrize(("kind", "mark"), REMARKS)
def test_a_suppression_comment_has_its_kind(kind: str, mark: str) -> None:
    path = PY if mark.startswith("#") else "app.js"
    (delta,) = scene(case({path: "x = 1\n"}, {path: f"y = 2\n{mark}\n"})).deltas
    assert [(one.kind, one.line, one.text) for one in ratchet.added(delta)] == [(kind, 2, mark)]


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        ("a.rs", "#[allow(x)]\nfn f() {}\n", "lint"),
        ("a.rs", "#![allow(x)]\n", "lint"),
        ("a.rs", "#[expect(x)]\nfn f() {}\n", "lint"),
        ("A.java", '@SuppressWarnings("x")\nclass A {}\n', "lint"),
        ("A.java", "@Generated\nclass A {}\n", "coverage"),
        ("a.py", "@no_type_check\ndef f(): ...\n", "type"),
        ("a.py", "@typing.no_type_check\ndef f(): ...\n", "type"),
        ("a.rs", "#[coverage(off)]\nfn f() {}\n", "coverage"),
        ("a.c", "#pragma GCC diagnostic ignored x\n", "lint"),
        ("a.c", "#pragma GCC system_header\n", "lint"),
        ("a.c", "#pragma warning(suppress: 4018)\n", "lint"),
        ("a.c", '__attribute__((no_sanitize("address")))\nint f(void);\n', "sanitizer"),
        ("a.c", "#define BARE __attribute__((no_sanitize_address))\n", "sanitizer"),
        ("a.cc", "[[clang::no_sanitize(x)]] int f();\n", "sanitizer"),
        ("a.cc", "__declspec(no_sanitize_address) int f() { return 1; }\n", "sanitizer"),
        ("a.rs", '#[sanitize(address = "off")]\nfn f() {}\n', "sanitizer"),
        ("a.rs", "#[no_sanitize(address)]\nfn f() {}\n", "sanitizer"),
        ("a.rs", "#[diag(suppress)]\nfn f() {}\n", "lint"),
        ("a.c", "__attribute__((noreturn)) int f(void);\n", None),
        ("a.c", "#define LIMIT 3\n", None),
        ("a.lua", "x = 1 # noqa\n", "lint"),
        ("Dockerfile", "RUN x # hadolint ignore=x\n", "lint"),
        ("a.py", "# speaks of nothing\n", None),
        ("a.txt", "# noqa\n", None),
    ],
)
def test_suppressions_in_attributes_and_unparsed_files_are_read(
    path: str, text: str, kind: str | None
) -> None:
    (delta,) = scene(case({path: "\n"}, {path: text})).deltas
    assert [one.kind for one in ratchet.added(delta)] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("failing", "kinds"),
    [
        (failed("ruff check .", Kind.LINT), "lint type security"),
        (failed("pre-commit run", Kind.PRE_COMMIT), "lint type security"),
        (failed("black .", Kind.FORMAT), "format"),
        (failed("make", Kind.BUILD), "lint type"),
        (failed("make", Kind.CUSTOM), "lint type"),
        (failed("bandit .", Kind.LINT), "security"),
        (failed("semgrep .", Kind.CUSTOM), "lint type security"),
        (failed("pytest --cov", Kind.TEST), "coverage"),
        (failed("nyc mocha", Kind.TEST), "coverage"),
        (failed("c8 mocha", Kind.TEST), "coverage"),
        (failed("go test -cover ./...", Kind.TEST), "coverage"),
        (failed("cargo tarpaulin", Kind.TEST), "coverage"),
        *((failed(f"{tool} src", Kind.LINT), "type") for tool in (
            "mypy", "pyright", "basedpyright", "tsc", "vue-tsc", "pyre", "pytype", "ty", "phpstan", "psalm")),
        (failed("make asan", Kind.TEST), "sanitizer"),
        (failed("go test -count=1 -race ./...", Kind.TEST), "sanitizer"),
        (replace(failed("make", Kind.TEST), stderr="SUMMARY: AddressSanitizer: x"), "sanitizer"),
        (replace(failed("pytest", Kind.TEST), stdout="FAIL Required test coverage of 90% not reached"), "coverage"),
        (replace(failed("npx jest", Kind.TEST), stderr='Jest: "global" coverage threshold for lines'), "coverage"),
        (replace(failed("make", Kind.TEST), stdout="Coverage failure: total of 8 is less than 9"), "coverage"),
        (replace(failed("pytest", Kind.TEST), stdout="test_coverage failed\ncoverage: 90 %"), ""),
        (failed("pytest", Kind.TEST), ""),
        (failed("look", Kind.REVIEW), ""),
    ],
)  # fmt: skip
def test_a_failing_gate_checks_its_kinds_of_suppressions(failing: GateResult, kinds: str) -> None:
    assert ratchet.kinds_failing(scene(case({}, {}, failing))) == {*kinds.split()}


GCC = {"rule_id": "-Wsign-compare", "path": "src/a.c"}
PRAGMA = '#pragma GCC diagnostic ignored "-Wsign-compare"\n'


@pytest.mark.parametrize(
    ("problem", "path", "mark", "is_held"),
    [
        (GCC, "src/a.c", PRAGMA, True),
        (GCC, "src/b.c", PRAGMA, True),
        (GCC | {"rule_id": "sign-compare"}, "src/b.c", PRAGMA, True),
        (GCC, "src/a.c", "#pragma GCC system_header\n", True),
        (GCC, "src/b.c", "#pragma GCC system_header\n", False),
        (GCC | {"rule_id": "-Wshadow"}, "src/b.c", PRAGMA, False),
        (GCC | {"rule_id": None}, "src/a.c", PRAGMA, False),
        (GCC | {"test_id": "a.b"}, "src/a.c", PRAGMA, False),
        (GCC, "src/a.c", "/* LCOV_EXCL_LINE */\n", False),
        ({"rule_id": "clippy::unwrap_used"}, "b.rs", "#[allow(clippy::unwrap_used)]\n", True),
        ({"rule_id": "E501"}, "b.py", "# noqa: E501\n", True),
    ],
)
def test_a_suppression_of_what_any_failing_gate_reports_is_held(
    problem: dict[str, str], path: str, mark: str, is_held: bool
) -> None:
    diagnostic = Diagnostic(tool="t", message="m", **problem)  # type: ignore[arg-type]
    gate = replace(failed("make test"), diagnostics=(diagnostic,))
    judgement = judged({path: "\n"}, {path: f"\n{mark}"}, gate)
    assert answers(judgement) == {"held" if is_held else "noted": {"suppression-added"}}


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ("x = 1\n", "x = 1  # noqa\ny = 2\n", "x = 1\ny = 2\n"),
        ("x = 1\n", "# noqa\nx = 1\n", "x = 1\n"),
        ("# noqa\n# noqa: E1\n", "# noqa\n# noqa: E1\n# noqa: E2\n# noqa\n", "# noqa\n# noqa: E1\n"),
        ("# noqa\n", "# noqa: E1\n# noqa: E2\n", "# noqa: E1\n"),
    ],
)  # fmt: skip
def test_only_added_suppressions_are_removed(before: str, after: str, left: str) -> None:
    judgement = judged({PY: before}, {PY: after}, RUFF)
    assert judgement.rewrite[PY] == ("100644", left.encode())
    assert {h.detail.partition(":")[0] for h in judgement.held} == {"a suppression was added"}


@pytest.mark.parametrize(
    ("before", "after", "is_more"),
    [
        ("x = 1  # noqa\n", "x = 1  # noqa: E501\n", False),
        ("x = 1  # noqa: E501\n", "x = 1  # noqa: E501, F401\n", True),
        ("x = 1  # noqa: E501\n", "x = 1  # noqa: E501 F401\n", True),
        ("x = 1  # type: ignore[a]\n", "x = 1  # type: ignore[a]  # noqa\n", True),
        ("x = 1  # why\n", "x = 1  # why # noqa\n", True),
        ("f(1)  # noqa\n", "f(1)  # noqa\nf(1)  # noqa\n", True),
        ("f(1)  # noqa\ng()\n", "g()\nf(1)  # noqa\n", False),
    ],
)
def test_a_suppression_may_be_narrowed_or_moved_but_not_widened(
    before: str, after: str, is_more: bool
) -> None:
    assert bool(judged({PY: before}, {PY: after}, RUFF).rewrite) is is_more


def test_an_added_suppression_and_changed_inline_tests_are_both_reverted() -> None:
    before = "fn f() {}\n\n#[test]\nfn g() {\n    assert!(true);\n}\n"
    after = "#[allow(x)]\nfn f() {}\n\n#[test]\nfn g() {\n}\n"
    judgement = judged({"a.rs": before}, {"a.rs": after}, failed("cargo clippy", Kind.LINT))
    assert judgement.rewrite["a.rs"] == ("100644", before.encode())


def test_a_multiline_suppression_needs_review() -> None:
    text = "@SuppressWarnings(\n  x)\nclass A {}\n"
    assert answers(judged({"A.java": "class A {}\n"}, {"A.java": text}, RUFF)) == {
        "review": {"suppression-added"}
    }


def test_the_mode_of_a_rewritten_file_is_preserved() -> None:
    change = case({PY: "x = 1\n"}, {PY: "x = 1  # noqa\n"}, RUFF, new_modes={PY: "100755"})
    assert guard.assess(change).rewrite[PY] == ("100755", b"x = 1\n")


# --- rules beside ---------------------------------------------------------------------------------

OWN = [
    (".atlas/hooks/a", "x\n", "y\n", True),
    ("atlas.yaml", "x\n", "y\n", True),
    ("atlas.yml", "x\n", "y\n", True),
    (".atlas.yaml", "x\n", "y\n", True),
    ("sub/atlas.yaml", "x\n", "y\n", False),
]  # fmt: skip


@pytest.mark.parametrize(("path", "before", "after", "own"), OWN)
def test_configuration_and_state_of_atlas_are_recognised(
    path: str, before: str, after: str, own: bool
) -> None:
    change = replace(case({path: before}, {path: after}), in_run=True)
    assert ("atlas-touched" in answers(guard.assess(change)).get("refused", set())) is own


GIT_STATE = [
    ({"HEAD": "1"}, {"HEAD": "2"}, [(".git", "git's HEAD is not as it was")]),
    ({}, {"refs/a": "2"}, [(".git", "git's refs/a is not as it was")]),
    ({"stash": "1"}, {}, [(".git", "git's stash is not as it was")]),
    ({}, {"index-flags:a:b": "1"}, [("a:b", "git's index-flags:a:b is not as it was")]),
    ({"index": "1"}, {"state:ORIG_HEAD": "1", "state:FETCH_HEAD": "1"}, []),
    ({"HEAD": "1"}, {"HEAD": "1"}, []),
]


@pytest.mark.parametrize(("before", "after", "findings"), GIT_STATE)
def test_a_changed_git_state_is_described(
    before: dict[str, str], after: dict[str, str], findings: list[tuple[str, str]]
) -> None:
    change = replace(case({}, {}), git_before=before, git_after=after)
    reason = " (history and settings of git are the user's)"
    assert [
        (v.path, v.detail.removesuffix(reason)) for v in guard.assess(change).refused
    ] == findings


@pytest.mark.parametrize(("old", "new"), [(None, "160000"), ("160000", "100644")])
def test_an_added_or_removed_submodule_is_refused(old: str | None, new: str) -> None:
    change = case(
        {"m": "1"} if old else {}, {"m": "2"}, old_modes={"m": old or ""}, new_modes={"m": new}
    )
    (one,) = guard.assess(change).refused
    assert one.detail.startswith("a submodule was added, moved or removed")


@pytest.mark.parametrize(
    ("path", "target", "out"),
    [
        ("a", "/etc/passwd", True),
        ("a", "../x", True),
        ("d/a", "../x", False),
        ("d/a", "../../x", True),
        ("a", "..x", False),
        ("a", "b", False),
    ],
)
def test_a_link_out_of_the_workspace_is_refused(path: str, target: str, out: bool) -> None:
    details = [v.detail for v in judged({}, {path: f"->{target}"}).refused]
    assert [d.partition(" (")[0] for d in details] == (
        [f"is now a link out of the workspace: {target}"] if out else []
    )


CACHES = """
    .cache/x a/.cache/x a/__pycache__/x .npm/_cacache/x .npm/_logs/x .yarn/x .pnpm-store/x
    .local/share/x .local/state/x .cargo/registry/x .cargo/git/x .cargo/.x .gradle/caches/x
    .gradle/daemon/x .m2/repository/x go/pkg/x go/telemetry/x .config/go/telemetry/x
    .pytest_cache/x .mypy_cache/x .ruff_cache/x .eslintcache .claude/x .claude.json .claude.json.bak
    .bash_history .python_history .node_repl_history .viminfo .lesshst .wget-hsts .rustup/tmp/x a.log
    """


@pytest.mark.parametrize("path", CACHES.split())
def test_files_that_tools_write_outside_are_not_charged(path: str) -> None:
    change = replace(case({}, {}), outside=(OutsideChange(place="/h", path=path),))
    assert answers(guard.assess(change)) == {}


DETAILS = [
    (replace(case({}, {}), nested=("a/.git",)), "a/.git", "belongs to a repository of its own and was changed (no snapshot holds what it had)"),
    (replace(case({}, {}), outside=(OutsideChange(place="/h/", path="x"),)), "/h/x", "is outside the workspace and was changed (only the workspace may change)"),
    (replace(case({}, {}), tools=(Tool(name="x", path="/y"),)), "/y", "`x` now leads to /y (the gate would run something else)"),
    (replace(case({}, {}), tools=(Tool(name="x", path=""),)), "x", "`x` now leads to nothing (the gate would run something else)"),
    (replace(case({}, {}), installed=("a",)), "a", "is a file of a dependency and was changed (the gates would run with other code than others have)"),
    (replace(case({"a": "1"}, {"a": "2"}), protect=("a",)), "a", "is protected by guard.protect (the user asked for it to stay as it is)"),
    (replace(case({}, {"atlas.yaml": "1"}), in_run=True), "atlas.yaml", "belongs to atlas (it decides what has to pass)"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "path", "detail"), DETAILS)
def test_a_refused_finding_says_what_was_done_and_why(change: Case, path: str, detail: str) -> None:
    assert [(v.path, v.detail) for v in guard.assess(change).refused] == [(path, detail)]


def test_few_rules_can_be_allowed_or_apply_to_tests() -> None:
    assert {r.name for r in beside.RULES if r.can_be_allowed} == {
        "outside-workspace", "dependency-changed"}  # fmt: skip
    assert {r.name for r in sources.RULES if r.in_tests} == {"framework-patched", "run-ended"}


# --- rules on sources -----------------------------------------------------------------------------

SPEAKS = [
    ("def f(a):\n    b = a\n    return b\n", "def f(a):\n    return g(a) + 1\n", None, None, ""),
    ("def f(a):\n    return a\n", "def f(a):\n    pass\n", None, None, ""),
    ("def f():\n    return 1\n\n\nx = 1\n", "x = 1\n", "feature-removed", None, "`f` was removed"),
    ("class A:\n    pass\n\n\nx = 1\n", "x = 1\n", "feature-removed", None, "`A` was removed"),
    ("def _f():\n    return 1\n\n\nx = 1\n", "x = 1\n", None, None, ""),
    ("def f():\n    return 1\n", "def g():\n    return 1\n", None, None, ""),
    ("x = 1\n", "class A:\n    def __eq__(self, o):\n        return True\n", "always-equal", 2, "what counts as equal was written by hand: `def __eq__(self, o):`"),
    ("x = 1\n", "class A:\n    def __eq__(self, o):\n        return abs(self.a - o.a) < 1\n", "always-equal", 2, "what counts as equal was written by hand: `def __eq__(self, o):`"),
    ("x = 1\n", "class A(int):\n    def __eq__(self, o):\n        return len(self.a) == len(o.a)\n", "always-equal", 2, "what counts as equal was written by hand: `def __eq__(self, o):`"),
    ("x = 1\n", "class A(B):\n    def __eq__(self, o):\n        return len(self.a) == len(o.a)\n", "always-equal", 2, "what counts as equal was written by hand: `def __eq__(self, o):`"),
    ("x = 1\n", "class A:\n    def __lt__(self, o):\n        return abs(self.a) < 1\n", "always-equal", 2, "what counts as equal was written by hand: `def __lt__(self, o):`"),
    ("class A:\n    def __eq__(self, o):\n        return True\n", "class A:\n    def __eq__(self, o):\n        return True\n\n\nx = 1\n", None, None, ""),
    ("try:\n    x = 1\nexcept Exception:\n    pass\n", "try:\n    y = 1\nexcept Exception:\n    pass\n", None, None, ""),
    ("x = 1\n", "try:\n    x = 1\nexcept:\n    pass\n", "errors-swallowed", 3, "ignores an error"),
    ("x = 1\n", "with suppress(Exception):\n    x = 1\n", "errors-swallowed", 1, "ignores an error"),
    ("x = 1\n", "x = 2\nsys.exit(0)\n", "run-ended", 2, "ends the process: `sys.exit(0)`"),
    ("x = 1\n", f"exit('{'y' * 90}')\n", "run-ended", 1, f"ends the process: `exit('{'y' * 74}`"),
    ("x = 1\n", "# os._exit(0)\nx = 2\n", None, None, ""),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "rule", "line", "detail"), SPEAKS)
def test_a_rule_names_the_line_and_what_was_done(
    before: str, after: str, rule: str | None, line: int | None, detail: str
) -> None:
    judgement = judged({PY: before}, {PY: after})
    found = (*judgement.noted, *judgement.held)
    seen = [(v.rule, v.line, v.detail.rpartition(" (")[0]) for v in found]
    assert seen == ([(rule, line, detail)] if rule else [])


@pytest.mark.parametrize(
    "text",
    [
        "x = y as any\n", "x = y as unknown as Z\n", "let x: any = 1\n", "x = <any>y\n",
    ],
)  # fmt: skip
def test_a_typescript_type_escape_needs_review(text: str) -> None:
    failing = failed("tsc", Kind.LINT)
    assert "type-escape" in answers(judged({"a.ts": "\n"}, {"a.ts": text}, failing)).get(
        "review", set()
    )


@pytest.mark.parametrize("text", ["x = cast(Any, y)\n", "def f(a) -> Any:\n    g()\n", "if not TYPE_CHECKING:\n    x = 1\n"])  # fmt: skip
def test_a_python_type_escape_needs_review(text: str) -> None:
    assert "type-escape" in answers(judged({PY: "\n"}, {PY: text}, MYPY)).get("review", set())


TESTS = {
    T: 'assert f("ORD-1001", 42.17) == 86.42\nassert g("crème", 99173) == "two words"\nassert h(4, 3) == 7\n'
       'assert k("plain") == "simple"\nassert m(0x1F4A2) == 1\nassert n("ab", "cd") == 55512\n'
}  # fmt: skip
LITERALS = [
    ('if o == "ORD-1001":\n    r = 86.42\n', True),
    ('if o == "ORD-1001":\n    r = 1\n', True),
    ('if o != "ORD-1001":\n    r = 86.42\n', True),
    ('if o < "ORD-1001":\n    r = 86.42\n', False),
    ('if o in ("ORD-1001", "x"):\n    r = 86.42\n', True),
    ('if o.startswith("ORD-1001"):\n    r = 86.42\n', True),
    ('r = f("ORD-1001")\n', False),
    ('r = "ORD-1001"\n', False),
    ('if "crème" == o:\n    r = "two words"\n', True),
    ('if o == "plain":\n    r = "simple"\n', False),
    ("if n == 99173:\n    r = 1\n", True),
    ("if n == 42.17:\n    r = 1\n", True),
    ("if n == 4:\n    r = 7\n", False),
    ("if n == 4 and m == 3:\n    r = 7\n", True),
    ("if n == 4 and m == 3:\n    r = 8\n", False),
    ("if n + 99173:\n    r = 1\n", False),
    ('r = {"ORD-1001": 86.42}[o]\n', True),
    ('r = {o: "ORD-1001"}\n', False),
    ("match o:\n    case 99173:\n        r = 1\n", True),
    ("T = {1: 86.42, 2: 'two words'}\n", True),
    ("T = {1: 86.42, 2: 'elsewhere'}\n", False),
    ("T = {1: 86.42}\n", False),
    ("if o == 'ORD-1002':\n    r = 86.42\n", False),
]


@pytest.mark.parametrize(("text", "reported"), LITERALS)
def test_a_branch_on_values_of_the_tests_needs_review(text: str, reported: bool) -> None:
    given = answers(judged({**TESTS, PY: "\n"}, {PY: text})).get("review", set())
    assert ("special-cased" in given) is reported


def test_a_branch_finding_names_values_and_line() -> None:
    text = 'x = 1\nif o == "ORD-1001":\n    r = 86.42\n'
    (held,) = judged({**TESTS, PY: "\n"}, {PY: text}).held
    wanted = (
        'branches on "ORD-1001", found only in the tests (the code answers the test, not the task)'
    )
    assert (held.line, held.detail) == (2, wanted)
    (held,) = judged({**TESTS, PY: "\n"}, {PY: "if n == 4 and m == 3:\n    r = 7\n"}).held
    assert held.detail.startswith("branches on 4, 3, as one line of a test has")
    (held,) = judged({**TESTS, PY: "\n"}, {PY: "T = {1: 86.42, 2: 'two words'}\n"}).held
    assert held.detail.startswith('answers with 86.42, "two words", found only in tests')


def test_a_value_already_compared_before_is_not_a_new_branch() -> None:
    there = 'if o == "ORD-1001":\n    r = 1\n'
    assert answers(judged({**TESTS, PY: there}, {PY: there.replace("r = 1", "r = 86.42")})) == {}


# --- tokens ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "before", "after", "same"),
    [
        ("a.py", b"x = 1", b"x=1  # why\n", True),
        ("a.py", b"x = 1", b"x = 1  # noqa\n", False),
        ("a.py", b"x = (", b"x = (", False),
        ("a.pyi", b"x: int", b"x : int", True),
        ("a.pyi", b"x: (int)", b"x: int", True),
        ("a.js", b"f('a', b,)", b'f("a", b);', True),
        ("a.js", b"f('a\\n')", b'f("a\\n")', False),
        ("a.js", b"f(`a${b}`)", b"f(`a${c}`)", False),
        ("a.js", b"f(1)", b"f(1) // eslint-disable-line\n", False),
        ("a.txt", b"a b", b"a  b\n", False),
        ("a.txt", b"a b", b"b a", False),
        ("a.lua", b"a b", b"a  b", False),
        ("a.py", None, None, True),
        ("a.py", None, b"", False),
        ("a.py", b"", None, False),
        ("a.go", b"package a\n// why\n", b"package a\n", True),
        ("a.go", b"package a\n//go:generate x\n", b"package a\n", False),
        ("a.rs", b"/// Why.\nfn a() {}\n", b"fn a() {}\n", True),
    ],
)
def test_layout_quotes_and_comments_do_not_count(
    path: str, before: bytes | None, after: bytes | None, same: bool
) -> None:
    assert tokens.same_tokens(path, before, after) is same


def test_words_of_a_source_exclude_comments() -> None:
    assert tokens.words_of("a.py", b"x = y  # z\n") == {"x", "y"}
    assert tokens.words_of("a.py", b"x = (  # z\n") == {"x", "z"}
    assert tokens.words_of("a.py", None) == frozenset()
    assert PYTEST.command == "pytest -q"


def test_answers_have_their_printed_names() -> None:
    assert [*AnswerWord] == ["refused", "held", "review", "noted"]

"""What decides is held; what grew, was laid out anew or follows the sources is kept."""

import ast
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from atlas_retry import guard
from atlas_retry.guard import beside, decides, places, rulings, sources
from atlas_retry.guard.case import Delta
from atlas_retry.guard.grown import confined
from atlas_retry.model import Kind
from atlas_retry.patterns import words
from atlas_retry.run.held import CHANGED_IN_GIT
from atlas_retry.text.globs import Globs, overlap
from tests.guardcases import answers, case, failed, judged

PY = "tests/test_a.py"
TEST = """
    import pytest
    from app import add


    @pytest.mark.parametrize(
        ("a", "b", "total"),
        [
            (1, 2, 3),
            (2, 2, 4),
        ],
    )
    def test_add(a, b, total):
        assert add(a, b) == total


    class TestMore:
        def test_none(self):
            with pytest.raises(TypeError):
                add(None, 1)
    """
JS = "src/cart.test.js"
JS_TEST = """
    import { total } from './cart';

    describe('cart', () => {
      it('sums', () => {
        expect(total([1, 2])).toBe(3);
      });
    });
    """
GO = "ring_test.go"
GO_TEST = """
    package ring

    import "testing"

    func TestLen(t *testing.T) {
    	for _, c := range []struct{ in, want int }{
    		{1, 1},
    		{2, 2},
    	} {
    		if got := Len(c.in); got != c.want {
    			t.Fatalf("got %d", got)
    		}
    	}
    }
    """
RUST = "tests/it.rs"
RUST_TEST = """
    use ring::len;

    #[test]
    fn counts() {
        assert_eq!(len(&[1, 2]), 2);
    }
    """
JAVA = "src/test/java/CartTest.java"
JAVA_TEST = """
    import org.junit.jupiter.api.Test;

    class CartTest {
        @Test
        void sums() {
            assertEquals(3, Cart.total(1, 2));
        }
    }
    """
RUBY = "spec/cart_spec.rb"
RUBY_TEST = """
    require 'cart'

    RSpec.describe Cart do
      it 'sums' do
        expect(Cart.total([1, 2])).to eq(3)
      end
    end
    """

KEPT = [
    pytest.param(PY, TEST, TEST.replace('"a", "b", "total"', "'a', 'b', 'total'"), id="quotes"),
    pytest.param(PY, TEST, TEST.replace("(2, 2, 4),\n", "(2, 2, 4)\n"), id="comma"),
    pytest.param(
        PY, TEST, TEST.replace("def test_none", "# why\n        def test_none"), id="remark"
    ),
    pytest.param(
        PY, TEST, TEST + "\n\n    def test_zero():\n        assert add(0, 0) == 0\n", id="test"
    ),
    pytest.param(
        PY, TEST, TEST.replace("(2, 2, 4),", "(2, 2, 4),\n            (5, 5, 10),"), id="row"
    ),
    pytest.param(
        PY, TEST, TEST.replace("import pytest\n", "import math\n    import pytest\n"), id="import"
    ),
    pytest.param(PY, TEST, TEST.replace("import add", "import add, sub"), id="import-beside"),
    pytest.param(
        PY,
        TEST,
        TEST + "\n        def test_text(self):\n            assert add('a', 'b') == 'ab'\n",
        id="method",
    ),
    pytest.param(
        PY,
        TEST,
        TEST.replace("== total", "== total\n        assert add(b, a) == total"),
        id="assertion",
    ),
    pytest.param(
        RUST,
        RUST_TEST,
        RUST_TEST.replace(", 2);", ", 2);\n        assert_eq!(len(&[1]), 1);"),
        id="rust-assertion",
    ),
    pytest.param(
        JS,
        JS_TEST,
        JS_TEST.replace("'sums'", '"sums"').replace(";\n      });", "\n      })"),
        id="js-layout",
    ),
    pytest.param(
        JS,
        JS_TEST,
        JS_TEST.replace(
            "      });\n    });",
            "      });\n      it('is empty', () => { expect(total([])).toBe(0); });\n    });",
        ),
        id="js-test",
    ),
    pytest.param(
        GO, GO_TEST, GO_TEST.replace("{2, 2},", "{2, 2},\n    		{3, 3},"), id="go-row"
    ),
    pytest.param(
        GO,
        GO_TEST,
        GO_TEST + "\n    func TestZero(t *testing.T) {\n    	Len(0)\n    }\n",
        id="go-test",
    ),
    pytest.param(
        RUST,
        RUST_TEST,
        RUST_TEST + "\n    #[test]\n    fn empty() {\n        assert_eq!(len(&[]), 0);\n    }\n",
        id="rust-test",
    ),
    pytest.param(
        JAVA,
        JAVA_TEST,
        JAVA_TEST.replace(
            "        }\n    }",
            "        }\n\n        @Test\n        void empty() {\n            assertEquals(0, Cart.total());\n"
            "        }\n    }",
        ),
        id="java-test",
    ),
    pytest.param(
        RUBY,
        RUBY_TEST,
        RUBY_TEST.replace(
            "      end\n    end",
            "      end\n\n      it 'is empty' do\n        expect(Cart.total([])).to eq(0)\n      end\n    end",
        ),
        id="ruby-test",
    ),
    pytest.param(
        "tests/data.json", '{"a": 1, "b": [1, 2]}', '{\n "b": [1, 2],\n "a": 1}', id="json"
    ),
    pytest.param(
        "src/__snapshots__/a.snap",
        "exports[`a`] = `1`;\n",
        "exports[`a`] = `1`;\nexports[`b`] = `2`;\n",
        id="snapshot",
    ),
]
HELD = [
    pytest.param(PY, TEST, TEST.replace("(2, 2, 4)", "(2, 2, 5)"), id="expectation"),
    pytest.param(PY, TEST, TEST.replace("            (2, 2, 4),\n", ""), id="row-removed"),
    pytest.param(
        PY, TEST, TEST.replace("assert add(a, b) == total", "assert add(a, b)"), id="weaker"
    ),
    pytest.param(PY, TEST, TEST.replace("def test_add", "def check_add"), id="uncollected"),
    pytest.param(
        PY, TEST, TEST.replace("    assert add", "    return\n        assert add"), id="return"
    ),
    pytest.param(PY, TEST, TEST + "\n    pytestmark = pytest.mark.skip\n", id="skip-all"),
    pytest.param(PY, TEST, TEST + "\n    def test_add():\n        pass\n", id="shadowed"),
    pytest.param(PY, TEST, TEST + "\n    def add(a, b):\n        return 3\n", id="code-shadowed"),
    pytest.param(
        PY,
        TEST,
        TEST + "\n    @pytest.fixture(autouse=True)\n    def quiet(monkeypatch):\n        pass\n",
        id="autouse",
    ),
    pytest.param(PY, TEST, TEST + "\n    def setup_module():\n        pass\n", id="set-up"),
    pytest.param(PY, TEST, TEST + "\n    add.__code__ = (lambda a, b: 3).__code__\n", id="patch"),
    pytest.param(
        PY, TEST, TEST.replace("from app import add", "from fake import add"), id="import-led"
    ),
    pytest.param(PY, TEST, TEST + "\n    from fake import add\n", id="import-shadows"),
    pytest.param(PY, TEST, "", id="deleted"),
    pytest.param(JS, JS_TEST, JS_TEST.replace("it('sums'", "it.skip('sums'"), id="js-skip"),
    pytest.param(
        JS,
        JS_TEST,
        JS_TEST.replace("    describe(", "    it.only('x', () => {});\n    describe("),
        id="js-only",
    ),
    pytest.param(
        JS,
        JS_TEST,
        JS_TEST.replace("    describe(", "    jest.mock('./cart');\n    describe("),
        id="js-mock",
    ),
    pytest.param(
        JS,
        JS_TEST,
        JS_TEST.replace("      it('sums'", "      beforeEach(() => {});\n      it('sums'"),
        id="js-before",
    ),
    pytest.param(JS, JS_TEST, JS_TEST.replace("[1, 2]", "[1, 2, 0]"), id="js-input"),
    pytest.param(
        GO, GO_TEST, GO_TEST.replace("	for _", "	t.Skip()\n    	for _"), id="go-skip"
    ),
    pytest.param(GO, GO_TEST, "//go:build never\n\n" + GO_TEST, id="go-build-tag"),
    pytest.param(GO, GO_TEST, GO_TEST + "\n    func TestMain(m *testing.M) {}\n", id="go-main"),
    pytest.param(
        RUST, RUST_TEST, RUST_TEST.replace("#[test]", "#[test]\n    #[ignore]"), id="ignored"
    ),
    pytest.param(
        JAVA, JAVA_TEST, JAVA_TEST.replace("@Test", "@Disabled @Test"), id="java-disabled"
    ),
    pytest.param(RUBY, RUBY_TEST, RUBY_TEST.replace("it 'sums'", "xit 'sums'"), id="ruby-pending"),
    pytest.param("tests/data.json", '{"a": 1}', '{"a": 2}', id="data"),
    pytest.param(
        "src/__snapshots__/a.snap", "exports[`a`] = `1`;\n", "exports[`a`] = `2`;\n", id="snap"
    ),
]


@pytest.mark.parametrize(("path", "before", "after"), KEPT)
def test_a_test_file_with_additions_or_new_layout_is_kept(
    path: str, before: str, after: str
) -> None:
    assert answers(judged({path: before}, {path: after})) == {}


@pytest.mark.parametrize(("path", "before", "after"), HELD)
def test_any_other_change_to_a_test_is_held_and_restored(
    path: str, before: str, after: str
) -> None:
    judgement = judged({path: before}, {path: after})
    assert (answers(judgement), judgement.restore) == ({"held": {"test-changed"}}, (path,))


@pytest.mark.parametrize(
    ("path", "proved"),
    [(PY, "(5, 5, 10),"), (PY, None)],
    ids=["grown", "same"],
)
def test_added_tests_are_verified_by_running_but_layout_is_not(
    path: str, proved: str | None
) -> None:
    after = (
        TEST.replace("(2, 2, 4),", f"(2, 2, 4),\n            {proved}") if proved else TEST + "\n"
    )
    judgement = judged({path: TEST}, {path: after})
    assert list(judgement.as_before) == ([path] if proved else [])


def test_new_tests_and_their_data_are_absent_in_the_deciding_run() -> None:
    new = {"tests/test_b.py": "def test_b():\n    assert True\n", "tests/b.txt": "1\n"}
    judgement = judged({PY: TEST}, new)
    assert (answers(judgement), dict(judgement.as_before)) == ({}, dict.fromkeys(new))


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("tests/conftest.py", "collect_ignore = ['test_a.py']\n"),
        ("tests/jest.setup.js", "jest.retryTimes(3)\n"),
        ("tests/pytest.ini", "[pytest]\n"),
        ("tests/known.txt", "1\n"),
    ],
)
def test_a_new_file_that_affects_existing_tests_is_held(path: str, content: str) -> None:
    before = {PY: TEST + "\n    DATA = open('tests/known.txt')\n"}
    assert "held" in answers(judged(before, {path: content}))


RENAMED = {"app.py": "def add(a, b):\n    return a - b\n", PY: TEST}


def test_a_test_that_follows_a_rename_in_the_sources_is_kept() -> None:
    after = {
        "app.py": "def plus(a, b):\n    return a + b\n",
        PY: TEST.replace("import add", "import plus").replace(" add(", " plus("),
    }
    judgement = judged(RENAMED, after)
    assert (answers(judgement).get("held"), dict(judgement.as_before)) == (None, {})


def test_a_test_that_calls_another_existing_name_is_held() -> None:
    after = {
        "app.py": "def add(a, b):\n    return a - b\n\n\ndef plus(a, b):\n    return a + b\n",
        PY: TEST.replace("import add", "import plus").replace(" add(", " plus("),
    }
    assert answers(judged(RENAMED, after)) == {"held": {"test-changed"}}


def test_imports_may_follow_a_moved_module() -> None:
    before = {"app/sums.py": "def add(a, b):\n    return a\n", "app/__init__.py": "\n",
              PY: TEST.replace("from app", "from app.sums")}  # fmt: skip
    after = {"app/sums.py": "", "app/maths.py": "def add(a, b):\n    return a + b\n",
             PY: TEST.replace("from app", "from app.maths")}  # fmt: skip
    assert "held" not in answers(judged(before, after))


def test_imports_of_a_test_may_be_sorted_though_no_source_has_their_names() -> None:
    imported = 'import (\n\t"testing"\n\t"os"\n)\n'
    body = 'func TestSum(t *testing.T) {\n\tos.Setenv("A", "b")\n\tif Sum(1, 2) != 3 {\n\t\tt.Fatal("sum")\n\t}\n}\n'
    before = {
        "sum_test.go": f"package sum\n\n{imported}\n{body}",
        "sum.go": 'package sum\n\nimport "os"\n',
    }
    after = {"sum_test.go": before["sum_test.go"].replace('"testing"\n\t"os"', '"os"\n\t"testing"')}
    assert answers(judged(before, after)) == {}


@pytest.mark.parametrize("path", ["tests/unit/test_a.py", "attic/test_a.py", "tests/test_b.py"])
def test_a_moved_test_file_is_held(path: str) -> None:
    assert answers(judged({PY: TEST}, {PY: "", path: TEST})) == {"held": {"test-changed"}}


def test_a_lint_fix_in_a_test_is_kept() -> None:
    before = {
        PY: "import os\nfrom app import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    }
    after = {PY: "from app import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"}
    complained = failed("ruff check .", Kind.LINT, (PY, 1))
    judgement = judged(before, after, complained)
    assert (answers(judgement), list(judgement.as_before)) == ({}, [PY])


UNUSED = """
    import os
    from app import find

    def test_find():
        found = find([], "ann")
        left = find([], "bob")
        find([], "cy")
        assert left is None
    """


@pytest.mark.parametrize(
    ("line", "old", "new", "is_kept"),
    [
        (5, '        found = find([], "ann")\n', "", True),
        (5, 'found = find([], "ann")', 'found = find([], "dan")', False),
        (5, 'found = find([], "ann")', "found = find([])", False),
        (6, '        left = find([], "bob")\n', "", False),
        (7, '        find([], "cy")\n', "", False),
        (8, "        assert left is None\n", "", False),
    ],
)
def test_a_lint_fix_may_remove_with_its_literals_only_what_is_unused(
    line: int, old: str, new: str, is_kept: bool
) -> None:
    complained = failed("ruff check .", Kind.LINT, (PY, line))
    judgement = judged({PY: UNUSED}, {PY: UNUSED.replace(old, new)}, complained)
    assert answers(judgement) == ({} if is_kept else {"held": {"test-changed"}})


TYPED = """
    import os
    import pytest
    from app import find

    def check(name: str, want) -> None:
        assert find([], name) == want

    def test_find() -> None:
        check("ann", None)
    """


@pytest.mark.parametrize(
    ("line", "old", "new", "is_kept"),
    [
        (5, "want) ->", "want: object) ->", True),
        (6, "        assert", "        assert name\n        assert", True),
        (1, "    import os\n", "", True),
        (1, "    import os\n", "    pytestmark = pytest.mark.skip\n", False),
        (1, "    def test_find", "    @pytest.mark.skip\n    def test_find", False),
        (1, "    def test_find", "    def find_test", False),
        (1, '        check("', '        return\n        check("', False),
    ],
)
def test_a_fix_of_a_reported_line_may_add_only_imports_and_assertions_elsewhere(
    line: int, old: str, new: str, is_kept: bool
) -> None:
    after = TYPED.replace(old, new)
    fixed = after.replace("    import os\n", "") if line == 1 else after
    complained = failed("mypy --strict .", Kind.LINT, (PY, line))
    judgement = judged({PY: TYPED}, {PY: fixed}, complained)
    assert answers(judgement) == ({} if is_kept else {"held": {"test-changed"}})


def test_a_lint_fix_may_remove_a_module_and_declare_a_constant() -> None:
    before = {JS: "const path = require('node:path');\nlet total = sum('1', 2);\ncheck(total);\n"}
    after = {JS: "const total = sum('1', 2);\ncheck(total);\n"}
    complained = failed("eslint .", Kind.LINT, (JS, 1), (JS, 2))
    assert answers(judged(before, after, complained)) == {}


@pytest.mark.parametrize("line", [1, 6])
def test_a_lint_fix_that_drops_an_assertion_is_held(line: int) -> None:
    before = {
        PY: "import os\nfrom app import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    }
    after = {PY: "from app import add\n\n\ndef test_add():\n    add(1, 2)\n"}
    complained = failed("ruff check .", Kind.LINT, (PY, line))
    assert answers(judged(before, after, complained)) == {"held": {"test-changed"}}


SETTINGS = [
    ("ruff.toml", "select = ['E']\n", "select = []\n", "settings-changed"),
    (".github/workflows/ci.yml", "on: push\n", "on: never\n", "pipeline-changed"),
    ("Makefile", "test:\n\tpytest\n", "test:\n\ttrue\n", "recipe-changed"),
    ("build.rs", None, "fn main() { std::fs::write(p, q); }\n", "recipe-changed"),
    ("native/binding.gyp", "{}", '{"targets": []}', "recipe-changed"),
    ("uv.lock", "a = 1\n", "a = 2\n", "lock-changed"),
    (".gitignore", "build/\n", "build/\n.git*\n", "ignore-changed"),
    (".gitignore", "build/\n", "dist/\n", "ignore-changed"),
    ("pyproject.toml", "[tool.mypy]\nstrict = true\n", "[tool.mypy]\n", "settings-changed"),
    ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "true"}}', "settings-changed"),
    ("Cargo.toml", "[lints.rust]\nunsafe = 'deny'\n", "[lints.rust]\n", "settings-changed"),
    ("setup.cfg", "[flake8]\nmax = 1\n", "[flake8]\nmax = 9\n", "settings-changed"),
    ("go.mod", "module a\n", "module a\nreplace b => ../b\n", "settings-changed"),
    ("requirements.txt", "a==1\n", "a @ git+https://x\n", "settings-changed"),
    ("pom.xml", "<project><build>a</build></project>", "<project><build>b</build></project>", "settings-changed"),
    ("pyproject.toml", "[project]\nname = 'a'\n", "[project\n", "settings-changed"),
]  # fmt: skip


CARGO_LOCK = """
    version = 4

    [[package]]
    name = "serde"
    version = "1.0.0"
    source = "registry+https://github.com/rust-lang/crates.io-index"

    [[package]]
    name = "span"
    version = "0.2.0"
    """
UV_LOCK = """
    version = 1

    [[package]]
    name = "attrs"
    version = "1.0"
    source = { registry = "https://pypi.org/simple" }

    [[package]]
    name = "span"
    version = "0.2.0"
    source = { editable = "." }
    """
UNITS = (
    '\n    [[package]]\n    name = "units"\n    version = "0.1.0"\n    dependencies = ["span"]\n'
)


@pytest.mark.parametrize(
    ("path", "before", "after", "is_kept"),
    [
        ("Cargo.lock", CARGO_LOCK, CARGO_LOCK.replace("0.2.0", "0.3.0") + UNITS, True),
        ("Cargo.lock", CARGO_LOCK, CARGO_LOCK.replace("1.0.0", "1.0.1"), False),
        ("Cargo.lock", CARGO_LOCK, CARGO_LOCK.replace("    source = ", "    from = "), False),
        ("Cargo.lock", CARGO_LOCK, CARGO_LOCK.replace("version = 4", "version = 3"), False),
        ("Cargo.lock", CARGO_LOCK, "package = 1\n", False),
        ("uv.lock", UV_LOCK, UV_LOCK.replace("0.2.0", "0.3.0"), True),
        ("uv.lock", UV_LOCK, UV_LOCK.replace("registry =", "editable ="), False),
        ("poetry.lock", CARGO_LOCK, CARGO_LOCK.replace("0.2.0", "0.3.0"), False),
    ],
)
def test_a_lock_file_may_follow_the_packages_of_the_project_itself(
    path: str, before: str, after: str, is_kept: bool
) -> None:
    held = {} if is_kept else {"held": {"lock-changed"}}
    assert answers(judged({path: before}, {path: after})) == held


@pytest.mark.parametrize(("path", "before", "after", "rule"), SETTINGS)
def test_settings_pipelines_recipes_and_lock_files_are_held(
    path: str, before: str, after: str, rule: str
) -> None:
    assert answers(judged({path: before}, {path: after})).get("held") == {rule}


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("pyproject.toml", "[project]\nname = 'a'\n", "[project]\nname = 'a'\nversion = '2'\n"),
        ("package.json", '{"version": "1"}', '{"version": "2"}'),
        ("package.json", '{"dependencies": {}}', '{"dependencies": {"left-pad": "^1.0.0"}}'),
        ("Cargo.toml", "[dependencies]\n", "[dependencies]\nserde = '1'\n"),
        ("go.mod", "module a\n", "module a\nrequire b v1.0.0\n"),
        ("CMakeLists.txt", "add_library(a a.c)\n", "add_library(a a.c b.c)\n"),
        ("ruff.toml", "select = ['E', 'F']\n", "select = [\n  'E',\n  'F',\n]\n"),
        ("docs/a.md", "one\n", "two\n"),
    ],
)
def test_changes_outside_the_deciding_section_of_a_shared_file_are_kept(
    path: str, before: str, after: str
) -> None:
    given = answers(judged({path: before}, {path: after}))
    assert given in ({}, {"noted": {"dependency-added"}})


GATES = {
    "Makefile": "lint: style\n\tpython scripts/check.py\nstyle:\n\tsh tools/style.sh\n",
    "scripts/check.py": "print(1)\n",
    "tools/style.sh": "ruff check src && node tools/more.js\n",
    "tools/more.js": "limits = read('./limits.json'); check('../src/app.py', 'README.md')\n",
    "src/app.py": "x = 1\n",
    "package.json": '{"scripts": {"check": "node tools/js.js"}}',
    "tools/js.js": "1\n",
    "tools/limits.json": '{"size": 500}',
    "rotate.sh": "echo 1\n",
}


@pytest.mark.parametrize(
    ("path", "held"),
    [
        ("scripts/check.py", True),
        ("tools/style.sh", True),
        ("tools/more.js", True),
        ("tools/js.js", True),
        ("tools/limits.json", False),
        (".ruffrc", True),
        ("ruff.config.js", True),
        (".mypy.yml", True),
        (".nodeignore", True),
        ("mypy.json", True),
        (".black.yml", False),
        ("black.json", False),
        ("node.js", False),
        ("README.md", False),
        ("limits.py", False),
        ("rotate.sh", False),
        ("src/app.py", False),
    ],
)
def test_scripts_that_a_gate_runs_are_held_but_not_files_it_reads(path: str, held: bool) -> None:
    made = failed("make lint && npm run check && mypy src/app.py && sh -n rotate.sh", Kind.LINT)
    given = answers(judged(GATES, {path: "changed = 2\n"}, made))
    assert (given == {"held": {"gate-script-changed"}}) is held


@pytest.mark.parametrize(
    ("command", "held"),
    [
        ("sh a.sh", True),
        ("sh -e a.sh -n", True),
        ("sh -n a.sh", False),
        ("bash -e -n a.sh", False),
        ("perl -wc a.sh", False),
        ("node --check a.sh", False),
        ("php -l a.sh", False),
    ],
)
def test_a_script_that_is_only_parsed_is_not_held(command: str, held: bool) -> None:
    given = answers(judged({"a.sh": "echo 1\n"}, {"a.sh": "echo 2\n"}, failed(command)))
    assert bool(given) is held


@pytest.mark.parametrize(
    "path", ["pytest.py", "json.py", "src/requests.py", "app.pyi", "native.so"]
)
def test_a_new_file_that_shadows_a_tool_or_source_is_held(path: str) -> None:
    before = {"app.py": "x = 1\n", "requirements.txt": "requests>=2\n"}
    assert "held" in answers(judged(before, {path: "#!/bin/sh\nx = 1\n"}))


TOOLS = words("""
    pytest _pytest pluggy unittest hypothesis coverage ruff mypy black isort flake8 pylint pyright
    bandit tox nox pre_commit iniconfig
    """)


@pytest.mark.parametrize("place", ["{}.py", "src/{}.py", "{}/__init__.py"])
def test_a_new_module_never_replaces_a_known_tool(place: str) -> None:
    new = {place.format(tool): "x = 1\n" for tool in TOOLS}
    assert set(new) <= {one.path for one in judged({"app.py": "x = 1\n"}, new).held}


def test_paths_allowed_by_the_user_are_kept() -> None:
    given = answers(judged({PY: TEST}, {PY: "x = 1\n"}, allow=("tests/",)))
    assert given == {}


INLINE = """
    pub fn add(a: i32, b: i32) -> i32 {
        a - b
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn adds() {
            assert_eq!(super::add(1, 2), 3);
        }
    }
    """


def test_earlier_inline_tests_are_restored_in_the_new_source() -> None:
    after = INLINE.replace("a - b", "a + b").replace(", 3)", ", 4)")
    judgement = judged({"src/lib.rs": INLINE}, {"src/lib.rs": after})
    assert answers(judgement) == {"held": {"inline-test-changed"}}
    assert b"a + b" in judgement.rewrite["src/lib.rs"][1]
    assert b", 3)" in judgement.rewrite["src/lib.rs"][1]


@pytest.mark.parametrize(
    ("was", "now", "held"),
    [
        ("f(g(1))", "f(g(1), g(2))", True),
        ("each(g(1))", "each(g(1), g(2))", True),
        ("[g(1)]", "[g(1), g(2)]", False),
        ("mark.parametrize('a', [g(1)])", "mark.parametrize('a', [g(1), g(2)])", False),
    ],
)
def test_a_table_may_get_more_rows_but_a_call_no_more_arguments(
    was: str, now: str, held: bool
) -> None:
    before = {"tests/test_a.py": f"CASES = {was}\n"}
    judgement = judged(before, {"tests/test_a.py": f"CASES = {now}\n"})
    assert bool(judgement.held) is held


def test_inline_tests_may_be_added() -> None:
    more = "        #[test]\n        fn zero() {\n            assert_eq!(super::add(0, 0), 0);\n        }\n    }\n"
    after = INLINE.replace("a - b", "a + b").rstrip().removesuffix("}") + more
    assert answers(judged({"src/lib.rs": INLINE}, {"src/lib.rs": after})) == {}


DOCTEST = 'def add(a, b):\n    """Add.\n\n    >>> add(1, 2)\n    3\n    """\n    return a - b\n'


@pytest.mark.parametrize(
    ("command", "held"), [("pytest --doctest-modules", True), ("pytest", False)]
)
def test_docstring_examples_are_held_if_gates_run_them(command: str, held: bool) -> None:
    after = DOCTEST.replace("    3\n", "    -1\n").replace("Add.", "Subtract.")
    judgement = judged({"app.py": DOCTEST}, {"app.py": after}, failed(command))
    assert bool(judgement.held) is held
    assert not held or b"    3\n" in judgement.rewrite["app.py"][1]


def test_the_expected_output_of_an_example_follows_no_rename() -> None:
    shown = DOCTEST.replace("    3\n", "    'night1'\n")
    after = shown.replace("night1", "morning1")
    judgement = judged({"app.py": shown}, {"app.py": after}, failed("pytest --doctest-modules"))
    assert answers(judgement) == {"held": {"inline-test-changed"}}


GO_EXAMPLE = """
    package calc

    func ExampleAdd() {
    	fmt.Println(Add(1, 2))
    	// Output:
    	// 3
    }
    """


@pytest.mark.parametrize(("old", "new"), [("// 3", "// -1"), ("// Output:", "// That is:")])
def test_the_expected_output_of_a_go_example_is_held(old: str, new: str) -> None:
    before = {"example_test.go": GO_EXAMPLE, "calc.go": "package calc\n"}
    changed = judged(before, {"example_test.go": GO_EXAMPLE.replace(old, new)})
    assert answers(changed) == {"held": {"test-changed"}}


def test_a_go_example_may_be_added() -> None:
    more = GO_EXAMPLE.partition("func")[2].replace("ExampleAdd", "ExampleAdd_more")
    before = {"example_test.go": GO_EXAMPLE, "calc.go": "package calc\n"}
    added = judged(before, {"example_test.go": f"{GO_EXAMPLE}\n    func{more}"})
    assert answers(added) == {}


@pytest.mark.parametrize(
    ("command", "held"), [("python -m doctest use.md", True), ("pytest", False)]
)
def test_examples_in_text_files_are_held_if_gates_run_them(command: str, held: bool) -> None:
    text = "# Use\n\n>>> add(1, 2)\n3\n"
    judgement = judged({"use.md": text}, {"use.md": text.replace("3", "-1")}, failed(command))
    assert bool(judgement.held) is held
    more = judged({"use.md": text}, {"use.md": f"{text}\n>>> add(2, 2)\n4\n"}, failed(command))
    assert answers(more) == {}


@pytest.mark.parametrize(
    ("file", "held"),
    [("tests/test_docs.py", True), ("app.py", False)],
)
def test_examples_in_text_files_are_held_if_a_test_runs_them(file: str, held: bool) -> None:
    runs = "import doctest\n\n\ndef test_use():\n    assert not doctest.testfile('use.md').failed\n"
    before = {"use.md": "# Use\n\n>>> add(1, 2)\n3\n", file: runs}
    for after in (before["use.md"].replace("3", "-1"), "# Use\n"):
        judgement = judged(before, {"use.md": after}, failed("pytest"))
        assert bool(judgement.held) is held


def test_a_ruling_names_its_mechanism() -> None:
    change = case({PY: TEST, "app.py": "x = 1\n"}, {PY: "x = 1\n", "app.py": "x = 2\n"})
    mechanisms = {ruling.path: ruling.mechanism for ruling in rulings(change)}
    assert mechanisms == {PY: "decides: test-changed", "app.py": "a source, kept"}


TOX = "[tox]\nenvlist = py\n\n[testenv]\ndeps =\n    pytest\ncommands = pytest -q\n"
CI = """
    on: push
    jobs:
      test:
        runs-on: ubuntu
        steps:
          - uses: actions/checkout@v4
          - run: pytest
    """
MATRIX = CI.replace("runs-on: ubuntu", "strategy:\n          matrix:\n            python: ['3.12']")
STRICT = "[tool.mypy]\nstrict = true\n[tool.coverage.report]\nfail_under = 80\n"
MAKE = ".PHONY: test\n\ntest: data.txt\n\tpytest\n\n"
STEP = "      - run: pip install rich\n          - run: pytest\n"
PACKAGE = '{"scripts": {"test": "jest"}, "devDependencies": {"jest": "29"}}\n'
CARGO = '[package]\nname = "a"\n\n[dev-dependencies]\nb = "1"\n'


@pytest.mark.parametrize(
    ("path", "before", "after", "answer"),
    [
        ("tox.ini", TOX, TOX.replace("pytest\ncomm", "pytest\n    rich\ncomm"), "noted"),
        ("tox.ini", TOX, TOX.replace("pytest\ncomm", "pytest\n    -e ../p\ncomm"), "held"),
        ("tox.ini", TOX, TOX.replace("    pytest\ncomm", "    rich\ncomm"), "held"),
        ("tox.ini", TOX, TOX + "[pytest]\naddopts = -x\n", "held"),
        ("tox.ini", TOX, TOX + "ignore_outcome = true\n", "held"),
        (".github/workflows/a.yml", CI, CI.replace("      - run: pytest\n", STEP), "noted"),
        (
            ".github/workflows/a.yml",
            CI,
            CI.replace("jobs:\n", "jobs:\n      docs:\n        steps: []\n"),
            "noted",
        ),
        (
            ".github/workflows/a.yml",
            CI,
            CI.replace("- run: pytest\n", "- run: pytest\n            if: false\n"),
            "held",
        ),
        (".github/workflows/a.yml", CI, CI.replace("          - run: pytest\n", ""), "held"),
        (".github/workflows/a.yml", CI, CI.replace("pytest", "pytest -k a"), "held"),
        (
            ".github/workflows/a.yml",
            CI,
            CI.replace("runs-on: ubuntu", "runs-on: ubuntu\n        continue-on-error: true"),
            "held",
        ),
        (".github/workflows/a.yml", CI, CI.replace("@v4", "@v5"), "noted"),
        (".github/workflows/a.yml", CI, CI.replace("@v4", "@v3"), "held"),
        (
            ".github/workflows/a.yml",
            MATRIX,
            MATRIX.replace("['3.12']", "['3.12', '3.13']"),
            "noted",
        ),
        (".github/workflows/a.yml", MATRIX, MATRIX + "            exclude: [{os: a}]\n", "held"),
        ("ruff.toml", "select = ['E']\n", "select = ['E', 'F']\n", "noted"),
        ("ruff.toml", "ignore = ['E', 'F']\n", "ignore = ['E']\n", "noted"),
        ("ruff.toml", "ignore = ['E']\n", "ignore = ['E', 'F']\n", "held"),
        ("pyproject.toml", STRICT, STRICT.replace("80", "90"), "noted"),
        ("pyproject.toml", STRICT, STRICT.replace("80", "70"), "held"),
        ("pyproject.toml", STRICT, STRICT.replace("80", "90").replace("true", "false"), "held"),
        (".gitignore", "build/\n", "build/\n*.o\n", "noted"),
        ("requirements-test.txt", "a==1.9\n", "a==1.10\nb>=2\n", "noted"),
        ("requirements-test.txt", "a==1.9\n", "a==1.8\n", "held"),
        ("requirements-test.txt", "a==1.9\nb\n", "a==1.9\n", "held"),
        ("tests/requirements.txt", "a==1.9\n", "b==1.10\n", "held"),
        ("Makefile", MAKE, MAKE + "clean: stop\n\trm -rf build\n\nstop:\n\tkill 1\n", "noted"),
        ("Makefile", MAKE, MAKE.replace("y: t", "y: t doc") + "doc:\n\tsphinx\n", "noted"),
        ("Makefile", MAKE, MAKE + "test: doc\n", "held"),
        ("Makefile", MAKE, MAKE + "\tdoc\n", "held"),
        ("Makefile", MAKE, MAKE + "SHELL = true\n", "held"),
        ("Makefile", MAKE, MAKE + "x: SHELL = true\n", "held"),
        ("Makefile", MAKE, MAKE + "%: doc\n\ttrue\n", "held"),
        ("Makefile", MAKE, MAKE + "x: $(shell touch y)\n\ttrue\n", "held"),
        ("Makefile", MAKE, MAKE + "data.txt:\n\ttrue\n", "held"),
        ("Makefile", MAKE, "clean:\n\trm -rf build\n" + MAKE, "held"),
        ("Makefile", MAKE, MAKE.replace("\tpytest\n", "\tpytest\n\ttrue\n"), "held"),
        ("justfile", "test:\n    pytest\n", "test:\n    pytest\n\ndoc:\n    sphinx\n", "noted"),
        ("package.json", PACKAGE, PACKAGE.replace('"jest"}', '"jest", "dev": "vite"}'), None),
        ("package.json", PACKAGE, PACKAGE.replace('"jest"}', '"jest", "pretest": "a"}'), "held"),
        ("package.json", PACKAGE, PACKAGE.replace('"jest"}', '"true"}'), "held"),
        ("Cargo.toml", CARGO, CARGO + 'c = "2"\n', "noted"),
        ("Cargo.toml", CARGO, CARGO + 'c = { path = "../c" }\n', "held"),
        ("Cargo.toml", CARGO, CARGO.replace('b = "1"', 'b = "2"'), "held"),
    ],
)
def test_settings_that_only_add_what_no_check_loses_are_kept(
    path: str, before: str, after: str, answer: str | None
) -> None:
    judgement = judged({path: before}, {path: after})
    assert set(answers(judgement)) == ({answer} if answer else set())
    is_proved = answer == "noted" and path not in ("Cargo.toml", "requirements-test.txt")
    assert (path in judgement.as_before) is is_proved


@pytest.mark.parametrize(
    ("path", "text", "user", "held"),
    [
        ("app/testing/lines.py", "x = 1\n", "from app.testing import lines\n", False),
        ("app/testing/lines.py", "x = 1\n", "y = 1\n", True),
        ("app/testing/lines.py", "assert 1\n", "from app.testing import lines\n", True),
        ("tests/lines.py", "x = 1\n", "from tests import lines\n", True),
    ],
)
def test_a_new_file_that_a_source_imports_is_the_product(
    path: str, text: str, user: str, *, held: bool
) -> None:
    there = {"app/a.py": "z = 1\n"}
    rules = guard.rulings(case(there, {path: text, "app/a.py": user}))
    mechanism = next(one.mechanism for one in rules if one.path == path)
    assert (mechanism != "a source, kept") is held


def _rules_in_code() -> set[str]:
    """Ids of all rules: of the tables, those given as `rule=`, and those with a detail."""
    package = Path(guard.__file__).parents[1]
    files = (*(package / "guard").rglob("*.py"), *(package / "run").glob("*.py"))
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    keywords = (node for node in nodes if isinstance(node, ast.keyword) and node.arg == "rule")
    given = [keyword.value for keyword in keywords]
    pairs = (
        node.value
        for node in nodes
        if isinstance(node, ast.Return)
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "seen")
    )
    given += [pair.elts[0] for pair in pairs if isinstance(pair, ast.Tuple) and pair.elts]
    texts = (node.value for node in given if isinstance(node, ast.Constant))
    rules = {text for text in texts if isinstance(text, str) and re.fullmatch(r"\w+(-\w+)+", text)}
    rules |= {rule.name for rule in beside.RULES} | {rule.name for rule in sources.RULES}
    return rules | {row.rule for row in decides.TABLE} | {CHANGED_IN_GIT}


def test_every_rule_is_in_the_table_of_the_page() -> None:
    page = Path(__file__).parents[1].joinpath("docs/guard-reference.md").read_text()
    table = page.partition("<!-- rules -->")[2].partition("<!-- end of rules -->")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == _rules_in_code()


def test_guard_and_judge_have_a_limited_number_of_lines() -> None:
    package = Path(__file__).parents[1] / "atlas_retry"
    files = (package / "guard").rglob("*.py")
    assert sum(len(path.read_text().splitlines()) for path in files) <= 3_760


PATTERNS = (
    *(pattern for row in decides.TABLE for pattern in row.globs.patterns),
    *places.TESTS.patterns,
    *("a", "a/", "*.a", "*.a/", "/a", "a/b", "**/a", "**/", "a/**", "*", "?", "[ab]", "!a", "!*.a"),
)
SEGMENTS = ("a", "b", ".a", "b.a", "*", ".env", "tests", "conftest.py", "node_modules", ".github")


@given(
    st.sampled_from([pattern for pattern in PATTERNS if not pattern.startswith("!")]),
    st.sampled_from([pattern for pattern in PATTERNS if not pattern.startswith("!")]),
    st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=4).map("/".join),
)
def test_patterns_that_match_one_path_overlap(one: str, other: str, path: str) -> None:
    if Globs((one,)).match(path) and Globs((other,)).match(path):
        assert overlap(one, other)


def test_long_patterns_are_compared_quickly() -> None:
    started_s = time.process_time()
    assert not overlap("*a" * 200, "a*" * 200 + "b")
    assert overlap("**/" * 100 + "a", "b/" * 100 + "**")
    assert time.process_time() - started_s < 5


@given(
    st.lists(st.sampled_from(PATTERNS), max_size=6),
    st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=4).map("/".join),
)
def test_globs_match_like_gitignore(patterns: list[str], path: str) -> None:
    assert Globs(tuple(patterns)).match(path) == GitIgnoreSpec.from_lines(patterns).match_file(path)


SNAPSHOT = """\
// Jest Snapshot v1, https://goo.gl/fbAQLP

exports[`adds 1`] = `
x y
`;
"""


@pytest.mark.parametrize(
    ("path", "before", "after", "is_kept"),
    [
        ("tests/golden/a.txt", "a   1\nb   2\n", "a    1\nb    2\n", False),
        ("tests/golden/a.txt", "a 1\nb 2\n", "a 1\n\nb 2\n", False),
        ("tests/golden/a.csv", "a, 1\n", "a,1\n", False),
        ("tests/golden/a.md", "- a\n- b\n", "- a\n  - b\n", False),
        ("tests/golden/a.yaml", "a:\n  b: 1\nc: 2\n", "a:\n  b: 1\n  c: 2\n", False),
        ("tests/golden/a.yaml", "a: {b: 1}\n", "a:\n  b:  1\n", True),
        ("tests/golden/a.toml", "a = 1\n", "a=1\n", True),
        ("tests/golden/a.json", '{"a": [1, "x y"]}', '{\n  "a": [1, "x y"]\n}\n', True),
        ("tests/golden/a.json", '{"a": [1, "x y"]}', '{"a": [1, "x  y"]}', False),
        ("tests/golden/a.json", '{"a": true, "b": [1]}', '{"a": 1, "b": [1]}', False),
        ("tests/golden/a.json", '{"a": 1, "b": 2}', '{"b": 2, "a": 1}', True),
        ("tests/test_a.js", "f(1,2)\n", "f(\n  1,\n  2,\n)\n", True),
        ("Makefile", "test:\n\tpytest\n", "test:\n        pytest\n", False),
        ("tests/a.test.js.snap", SNAPSHOT, SNAPSHOT.replace("v1, https", "v1,  https"), True),
        ("tests/a.test.js.snap", SNAPSHOT, SNAPSHOT.replace("\n\n", "\n\n\n"), True),
        ("tests/a.test.js.snap", SNAPSHOT, SNAPSHOT.replace("x y", "x  y"), False),
        ("tests/a.test.js.snap", SNAPSHOT, SNAPSHOT.replace("adds 1", "adds  1"), False),
        ("tests/a.snap", "source: a\n---\nb\n c\n", "source: a\n---\nb\nc\n", False),
    ],
)
def test_white_space_is_layout_only_where_a_file_is_read_as_code_or_values(
    path: str, before: str, after: str, is_kept: bool
) -> None:
    judgement = judged({path: before.encode()}, {path: after.encode()})
    assert (answers(judgement) == {}) is is_kept
    assert judgement.as_before == {}


def test_a_lint_repair_of_thousands_of_statements_takes_seconds() -> None:
    old, new = ("".join(f"assert {name}({n})\n" for n in range(3_000)) for name in "fg")
    delta = Delta(
        path="tests/test_a.py",
        before=old.encode(),
        after=new.encode(),
        old_mode="100644",
        new_mode="100644",
    )
    began_s = time.process_time()
    assert confined(delta, frozenset(range(1, 3_001)))
    assert time.process_time() - began_s < 60


STORE = {
    "app/snapshots/store.py": "def newest(items):\n    return sorted(items)[0]\n",
    "app/load_test.py": "def seconds(samples):\n    return sum(samples)\n",
    "app/fixtures/load.py": "def keys(rows):\n    return [row[1] for row in rows]\n",
    "e2e/queue.js": "exports.next = (jobs) => jobs.pop();\n",
    "app/testing/tools.py": "def check(a, b):\n    assert a == b\n",
    "spec/lonely.py": "x = 1\n",
    "testing/clock/clock.go": "package clock\n\nfunc Hour(h int) int { return h % 12 }\n",
    "main.go": 'package main\n\nimport (\n\t"fmt"\n\t"acme/testing/clock"\n)\n',
    "testing/alone/alone.go": "package alone\n",
    "src/fixtures/mod.rs": "pub fn screws(n: u32) -> u32 { n / 2 }\n",
    "src/lib.rs": "pub mod fixtures;\n",
    "tests/help.py": "def rows():\n    return [1]\n",
    "tests/test_store.py": """
        from app.fixtures.load import keys
        from app.load_test import seconds
        from app.snapshots.store import newest
        from app.testing.tools import check
        from tests.help import rows


        def test_all():
            check(newest([3, 9]), 9)
        """,
    "tests/queue.test.js": "const { next } = require('../e2e/queue.js');\n",
}


@pytest.mark.parametrize(
    ("path", "is_product"),
    [
        ("app/snapshots/store.py", True),
        ("app/load_test.py", True),
        ("app/fixtures/load.py", True),
        ("e2e/queue.js", True),
        ("app/testing/tools.py", False),
        ("testing/clock/clock.go", True),
        ("src/fixtures/mod.rs", True),
        ("testing/alone/alone.go", False),
        ("spec/lonely.py", False),
        ("tests/help.py", False),
    ],
)
def test_code_that_is_imported_and_not_collected_is_the_product(
    path: str, is_product: bool
) -> None:
    judgement = judged(STORE, {path: "y = 2\n"})
    assert bool(judgement.held) is not is_product


@pytest.mark.parametrize(
    ("command", "path", "text", "held"),
    [
        ("python app.py 2 3 | diff - expected.txt", "app.py", "print(1)\n", False),
        ("python app.py 2 3 | diff - expected.txt", "expected.txt", "5\n", True),
        ('test "$(node app.js)" = 5', "app.js", "console.log(1)\n", False),
        ("sh tools/run.sh", "data/rates.json", "{}\n", False),
        ("sh tools/run.sh", "tools/run.sh", "cat data/rates.json\n", True),
        ("python compare.py", "compare.py", "assert open('a').read() == 'b'\n", True),
        ("python check_sizes.py", "check_sizes.py", "print(1)\n", True),
        ("python scripts/sizes.py", "scripts/sizes.py", "print(1)\n", True),
    ],
)
def test_the_program_under_test_and_its_data_do_not_decide(
    command: str, path: str, text: str, held: bool
) -> None:
    there = {"tools/run.sh": "cat data/rates.json\n", path: text}
    judgement = judged(there, {path: f"{text}\n2\n"}, failed(command))
    assert bool(judgement.held) is held

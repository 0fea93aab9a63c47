"""What leads from a failing test to the code at fault where the language is not Python."""

from collections.abc import Mapping

import pytest

from atlas_retry.prompt import compose
from atlas_retry.prompt.project import Project
from atlas_retry.source import Import
from atlas_retry.source.origin import is_test_path
from tests.briefs import PYTEST_LOG, brief_of, failed, ranked

RUST: Mapping[str, str] = {
    "Cargo.toml": '[package]\nname = "fruit-box"\n',
    "src/lib.rs": (
        "mod eval;\npub struct Crate(u8);\nimpl Crate {\n"
        "    pub fn holds(&self, n: u8) -> bool {\n        eval::is_inside(self.0, n)\n    }\n}\n"
    ),
    "src/eval.rs": "pub fn is_inside(size: u8, n: u8) -> bool {\n    n > size\n}\n",
    "tests/other.rs": "fn holds_nothing() -> bool {\n    false\n}\n",
    "tests/box.rs": (
        "use fruit_box::Crate;\n#[test]\nfn small() {\n"
        '    assert!(make().holds(3), "too small");\n}\n'
        "fn make() -> Crate {\n    todo!()\n}\n"
    ),
}
CARGO_LOG = """\
running 1 test
small --- FAILED

failures:

---- small stdout ----

thread 'small' (77) panicked at tests/box.rs:4:5:
too small
stack backtrace:
   0: core::panicking::panic_fmt
             at /rustc/598/library/core/src/panicking.rs:80:14
   1: box::small
             at ./tests/box.rs:4:5
   2: core::ops::function::FnOnce::call_once
             at /rustc/598/library/core/src/ops/function.rs:250:5

failures:
    small

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.05s
"""


def test_a_rust_test_leads_to_its_implementation() -> None:
    brief = brief_of(failed("cargo test", CARGO_LOG), files=RUST)
    code = [candidate.passage for candidate in ranked(brief) if not candidate.is_test]
    assert {passage.symbol for passage in code[:3]} >= {"is_inside", "Crate.holds"}
    assert "tests/other.rs" not in {passage.path for passage in code}


def test_a_condensed_panic_keeps_its_message_and_drops_runtime_frames() -> None:
    log = CARGO_LOG + "".join(
        CARGO_LOG.replace("small", f"small_{n}").replace("too small", f"too small {n}")
        for n in range(30)
    )
    text = compose(brief_of(failed("cargo test", log), files=RUST)).text
    assert "too small" in text
    assert "/rustc/" not in text


GO: Mapping[str, str] = {
    "go.mod": "module m\n",
    "sums/sums.go": "package sums\n\nfunc Add(a, b int) int {\n\treturn a - b\n}\n",
    "sums/all_test.go": (
        'package sums\n\nimport (\n\t"testing"\n\n\t"m/check"\n)\n\n'
        "func TestAdding(t *testing.T) {\n\tcheck.Equal(t, Add(1, 2), 3)\n}\n"
    ),
    "check/check.go": (
        'package check\n\nimport "testing"\n\n'
        'func Equal(t *testing.T, a, b int) {\n\tif a != b {\n\t\tt.Error("differ")\n\t}\n}\n'
    ),
}
GO_LOG = """\
--- FAIL: TestAdding (0.00s)
    check.go:7: differ
FAIL
FAIL	m/sums	0.001s
FAIL
"""


def test_a_go_test_is_found_although_the_failing_line_is_in_a_helper() -> None:
    brief = brief_of(failed("go test ./sums", GO_LOG), files=GO)
    assert "TestAdding" in {one.passage.symbol for one in ranked(brief) if one.is_test}
    assert "#### Start here: sums/sums.go:3-5 Add" in compose(brief).text


def test_a_source_named_like_the_failing_tests_file_needs_no_import() -> None:
    files = {
        "app/core.py": "def run(name):\n    return load(name)\n",
        "app/plugins/cart.py": "def total(items):\n    return sum(items) - 1\n",
        **{f"app/part{n}.py": f"def part{n}():\n    return {n}\n" for n in range(3)},
        "app/__init__.py": "".join(f"from .part{n} import part{n}\n" for n in range(3)),
        "tests/test_cart.py": (
            "import app\nfrom app.core import run\n\n\ndef test_it():\n    assert run('x') == 3\n"
        ),
    }
    log = PYTEST_LOG.replace("test_total", "test_it")
    brief = brief_of(failed("pytest", log), files=files)
    assert "app/plugins/cart.py" in {candidate.passage.path for candidate in ranked(brief)}


RAISING: Mapping[str, str] = {
    "shop/__init__.py": "",
    "shop/cart.py": (
        "from shop.money import read\n\n\n"
        "def add_up(prices):\n    if not prices:\n        return 0\n"
        "    return sum(read(one) for one in prices)\n"
    ),
    "shop/money.py": "def read(text):\n    return int(text)\n",
    "tests/test_cart.py": (
        "from shop.cart import add_up\n\n\n"
        "def test_decimals():\n    assert add_up(['1.5']) == 1.5\n"
    ),
}
RAISED = """\
=================================== FAILURES ===================================
__________________________________ test_decimals __________________________________
tests/test_cart.py:5: in test_decimals
    assert add_up(['1.5']) == 1.5
shop/cart.py:7: in add_up
    return sum(read(one) for one in prices)
shop/money.py:2: in read
    return int(text)
E   ValueError: invalid literal for int() with base 10: '1.5'
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_decimals - ValueError: invalid li...
1 failed in 0.01s
"""


def test_the_function_of_the_line_that_raises_heads_the_code() -> None:
    text = compose(brief_of(failed("pytest", RAISED), files=RAISING)).text
    assert "#### Start here: shop/money.py:1-2 read (traceback)" in text


VITEST: Mapping[str, str] = {
    "src/index.ts": (
        "export function upper(): '';\nexport function upper(text: string): string;\n"
        "export function upper(text?: string) {\n"
        "  return shout(text ?? '');\n}\n"
        "function shout(text: string) {\n  return text.toLowerCase();\n}\n"
        "export function lower(text: string) {\n  return text;\n}\n"
    ),
    "test/upper.test.ts": (
        'import { expect, test, describe } from "vitest";\nimport { upper } from "../src";\n'
        'describe("upper", () => {\n  test("a word", () => {\n'
        '    expect(upper("a")).toBe("A");\n  });\n});\n'
    ),
}
VITEST_LOG = """\
 FAIL  test/upper.test.ts > upper > a word
AssertionError: expected 'a' to be 'A' // Object.is equality
 \u276f test/upper.test.ts:5:24
"""


def test_a_test_named_like_a_function_leads_to_its_definition() -> None:
    brief = brief_of(failed("vitest run", VITEST_LOG), files=VITEST)
    code = [candidate.passage for candidate in ranked(brief) if not candidate.is_test]
    places = {(passage.path, passage.start_line) for passage in code[:2]}
    assert places == {("src/index.ts", 3), ("src/index.ts", 6)}


def test_a_java_test_leads_to_its_package() -> None:
    paths = ("a/src/test/java/p/BoxTest.java", "a/src/main/java/p/Box.java")
    assert Project(lambda _: b"", lambda: paths).siblings(paths[0]) == [paths[1]]


MONOREPO: Mapping[str, str] = {
    "packages/box/package.json": (
        '{"name": "@shop/box", "exports": {".": {"import": "./dist/index.mjs"}, '
        '"./money": "./lib/money.js", "./rind": "./dist/peel.js"}, '
        '"imports": {"#util": "./src/util.ts"}}'
    ),
    "packages/box/src/index.ts": "",
    "packages/box/src/money.ts": "",
    "packages/box/src/util.ts": "",
    "packages/box/peel.ts": "",
    "web/page.js": "",
    "web/menu.js": "",
    "fruit/main.rs": "",
    "fruit/apple.rs": "",
    "fruit/pear/mod.rs": "",
    "tsconfig.json": '{ // paths\n "compilerOptions": {"paths": {"~app/*": ["app/src/*"],}}}',
    "app/src/cart.ts": "",
    "go.mod": "module example.com/shop\n",
    "cart.go": "",
    "cart_test.go": "",
}


@pytest.mark.parametrize(
    ("path", "module", "expected"),
    [
        ("app/src/cart.ts", "@shop/box", "packages/box/src/index.ts"),
        ("app/src/cart.ts", "@shop/box/money", "packages/box/src/money.ts"),
        ("packages/box/src/index.ts", "#util", "packages/box/src/util.ts"),
        ("packages/box/src/index.ts", "~app/cart", "app/src/cart.ts"),
        ("app/src/cart.ts", "@shop/box/rind", "packages/box/peel.ts"),
        ("cart_test.go", "example.com/shop", "cart.go"),
        ("app/src/cart.ts", "../../web/menu", "web/menu.js"),
        ("web/page.js", "@shop/box", "packages/box/src/index.ts"),
        ("fruit/main.rs", "crate::apple", "fruit/apple.rs"),
        ("fruit/main.rs", "crate::pear", "fruit/pear/mod.rs"),
    ],
)
def test_imports_of_the_project_are_resolved(path: str, module: str, expected: str) -> None:
    project = Project(lambda name: MONOREPO[name].encode(), lambda: MONOREPO)
    assert (
        project.resolve(
            path, Import(module=module, name=None, local="x", start_line=1, end_line=1)
        )[0]
        == expected
    )


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("tests/a.py", True),
        ("pkg/test_a.py", True),
        ("conftest.py", True),
        ("a_test.go", True),
        ("src/a.spec.ts", True),
        ("src/a.test.tsx", True),
        ("src/tests.rs", True),
        ("src/test/java/AThing.java", True),
        ("CartTest.java", True),
        ("src/latest.py", False),
        ("src/contest.go", False),
        ("src/inspect.ts", False),
        ("attestation.rs", False),
    ],
)
def test_test_files_are_recognised_by_path(path: str, *, is_test: bool) -> None:
    assert is_test_path(path) is is_test

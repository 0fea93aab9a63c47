"""What single assertions and options of tests claim, in all languages but Python."""

import pytest

from tests.guardcases import failed, judged, rules_of

SHAPES = {
    "js": ("test/a.test.js", "test('a', () => {{\n  {}\n}});\n", "node --test"),
    "java": (
        "src/test/java/ATest.java",
        "class ATest {{\n  @Test\n  void a() {{\n    {}\n  }}\n}}\n",
        "mvn -q test",
    ),
    "rust": ("tests/a.rs", "#[test]\nfn a() {{\n    {}\n}}\n", "cargo test"),
    "go": ("a_test.go", "package a\n\nfunc TestA(t *testing.T) {{\n\t{}\n}}\n", "go test ./..."),
}

TURNED = [
    ("js", "expect(f(1)).toBe(true);", "expect(f(1)).toBe(false);"),
    ("js", "expect(f(1)).toBeNull();", "expect(f(1)).toBe(5);"),
    ("js", "expect(f(1)).toBeTruthy();", "expect(f(1)).toBeFalsy();"),
    ("js", "assert.equal(f(1, 'x'), true);", "assert.equal(f(1, 'x'), false);"),
    ("js", "assert.ok(f(1));", "assert.ok(!f(1));"),
    ("js", "assert.throws(() => f(1), RangeError);", "assert.doesNotThrow(() => f(1));"),
    ("java", "assertTrue(f(1));", "assertFalse(f(1));"),
    ("java", "assertThrows(A.class, () -> f(1));", "assertEquals(0, f(1));"),
    ("rust", "assert!(f(1));", "assert!(!f(1));"),
    ("rust", "assert!(f(1).is_ok());", "assert!(f(1).is_err());"),
    ("rust", "assert_eq!(f(1), Err(E::A));", 'assert_eq!(f(1), Ok("a".to_string()));'),
    ("rust", "assert!(matches!(f(1), Err(E::A)));", "assert_eq!(f(1).unwrap(), 1);"),
    ("go", 'if !f("x") {\n\t\tt.Error("x")\n\t}', 'if f("x") {\n\t\tt.Error("x")\n\t}'),
    (
        "go",
        'if _, err := f("x"); err == nil {\n\t\tt.Error("x")\n\t}',
        'if _, err := f("x"); err != nil {\n\t\tt.Error("x")\n\t}',
    ),
    ("go", "require.Error(t, f(1))", "require.NoError(t, f(1))"),
]
AS_GOOD = [
    ("js", "expect(f(1)).toBeTruthy();", "expect(f(1)).toBe(true);"),
    ("js", "expect(f(1)).toBeFalsy();", "expect(f(1)).toBe(0);"),
    ("js", "assert.equal(f(1), true);", "assert.strictEqual(f(1), true);"),
    ("js", "assert.equal(!f(1), false);", "assert.strictEqual(f(1), true);"),
    ("java", "assertEquals(true, f(1));", "assertTrue(f(1));"),
    ("java", "assertFalse(!f(1));", "assertTrue(f(1));"),
    ("rust", "assert!(f(1).is_err());", "assert_eq!(f(1), Err(E::A));"),
    ("rust", "assert_eq!(f(1).unwrap(), 1);", "assert_eq!(f(1), Ok(1));"),
    ("rust", "assert_eq!(f(1), Some(2));", "assert_eq!(f(1).unwrap(), 2);"),
    ("go", "require.NoError(t, f(1))", "require.Nil(t, f(1))"),
]


def changed(language: str, old: str, new: str) -> set[str]:
    """The rules that object to one statement of a test in the place of another."""
    path, shape, command = SHAPES[language]
    return rules_of(judged({path: shape.format(old)}, {path: shape.format(new)}, failed(command)))


@pytest.mark.parametrize(("language", "old", "new"), TURNED)
def test_a_claim_that_is_turned_round_is_refused(language: str, old: str, new: str) -> None:
    assert "expectation-changed" in changed(language, old, new)


@pytest.mark.parametrize(("language", "old", "new"), TURNED)
def test_a_claim_that_is_turned_round_in_a_test_of_another_name_is_refused(
    language: str, old: str, new: str
) -> None:
    path, shape, command = SHAPES[language]
    other = shape.replace("'a'", "'b'").replace("void a", "void b").replace("fn a", "fn b")
    after = other.replace("TestA(", "TestB(").format(new)
    assert judged({path: shape.format(old)}, {path: after}, failed(command))


@pytest.mark.parametrize(("language", "old", "new"), AS_GOOD)
def test_a_claim_in_other_words_is_fine(language: str, old: str, new: str) -> None:
    assert changed(language, old, new) == set()


OPTIONS = """
    const off = {{ skip: true }};
    const slow = {{ timeout: 5000 }};
    describe('f', {}() => {{
      it('a', {}({}) => {{
        {}assert.equal(f(1), 1);
      }});
    }});
"""
SWITCHED = [
    ("", "{ skip: true }, ", "", ""),
    ("", "{ skip: process.platform !== 'sunos' }, ", "", ""),
    ("", "{ todo: 'later' }, ", "", ""),
    ("", "{ timeout: 9, 'only': true }, ", "", ""),
    ("{ skip: 'flaky' }, ", "", "", ""),
    ("", "off, ", "", ""),
    ("", "", "t", "t.todo('later'); "),
    ("", "", "own", "own.skip(); "),
    ("", "", "{ skip }", "skip(); "),
]
RUNNING = [
    ("", "{ timeout: 5000 }, ", "", ""),
    ("", "{ skip: false }, ", "", ""),
    ("{ concurrency: true }, ", "", "", ""),
    ("", "slow, ", "", ""),
    ("", "", "t", "const rows = list.skip(1); "),
    ("", "", "t", "t.diagnostic('todo'); "),
]


@pytest.mark.parametrize("parts", SWITCHED)
def test_an_option_or_a_call_that_switches_a_test_off_is_refused(
    parts: tuple[str, str, str, str],
) -> None:
    path = "test/f.test.js"
    before, after = OPTIONS.format("", "", "", ""), OPTIONS.format(*parts)
    found = judged({path: before}, {path: after}, failed("node --test"))
    assert "test-switched-off" in rules_of(found)


@pytest.mark.parametrize("parts", RUNNING)
def test_an_option_or_a_call_that_lets_a_test_run_is_fine(parts: tuple[str, str, str, str]) -> None:
    path = "test/f.test.js"
    before, after = OPTIONS.format("", "", "", ""), OPTIONS.format(*parts)
    assert judged({path: before}, {path: after}, failed("node --test")) == ()


LOST = [
    "p(1).then((r) => expect(r).toBe(1)).catch(() => undefined);",
    "p(1).then((r) => { expect(r).toBe(1); });",
    "await p(1).then((r) => expect(r).toBe(1)).catch(() => {});",
    "void p(1).then((r) => expect(r).toBe(1));",
    "(async () => { expect(await p(1)).toBe(1); })();",
    "[p].forEach(async (q) => { expect(await q(1)).toBe(1); });",
    "setTimeout(async () => { expect(await p(1)).toBe(1); }, 5);",
]
HEARD = [
    "await p(1).then((r) => expect(r).toBe(1));",
    "return p(1).then((r) => { expect(r).toBe(1); });",
    "const q = p(1).then((r) => expect(r).toBe(1));\n  await q;",
    "await Promise.all([1].map(async (n) => expect(await p(n)).toBe(1)));",
    "await (async () => { expect(await p(1)).toBe(1); })();",
    "await new Promise((end) => { p(1).then((r) => { expect(r).toBe(1); end(); }); });",
    "p(1).then((r) => { expect(r).toBe(1); done(); }).catch(done);",
    "await p(1).then((r) => expect(r).toBe(1)).catch((e) => { throw new Error(e); });",
]
PROMISED = "test('a', async ({}) => {{\n  {}\n}});\n"


def promised(statement: str) -> set[str]:
    """The rules that object to another way of waiting for a promise."""
    path = "test/a.test.js"
    before = PROMISED.format("", "expect(await p(1)).toBe(1);")
    after = PROMISED.format("done" if "done" in statement else "", statement)
    return rules_of(judged({path: before}, {path: after}, failed("npx jest")))


@pytest.mark.parametrize("statement", LOST)
def test_an_assertion_that_nobody_waits_for_is_refused(statement: str) -> None:
    assert promised(statement)


@pytest.mark.parametrize("statement", HEARD)
def test_an_assertion_that_is_waited_for_is_fine(statement: str) -> None:
    assert promised(statement) == set()


REDUCED = [
    ("tests/test_a.py", "assert plan(1).keys() == want.keys()"),
    ("tests/test_a.py", "assert list(plan(1)) == list(want)"),
    ("tests/test_a.py", "assert set(plan(1)) == set(want)"),
    ("tests/test_a.py", "assert [row.sku for row in plan(1)] == [row.sku for row in want]"),
    ("tests/test_a.py", "assert plan(1).total == want.total"),
    ("tests/test_a.py", 'assert plan(1)["a"] == want["a"]'),
]


@pytest.mark.parametrize(("path", "said"), REDUCED)
def test_a_part_compared_where_the_whole_was_is_refused(path: str, said: str) -> None:
    before = "from a import plan, want\n\n\ndef test_a():\n    assert plan(1) == want\n"
    after = before.replace("assert plan(1) == want", said)
    assert "assertion-weakened" in rules_of(judged({path: before}, {path: after}))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "got = plan(1).keys()\n    assert got == want.keys()",
            "assert plan(1).keys() == want.keys()",
        ),
        ("assert set(plan(1)) == {'a', 'b'}", "assert plan(1).keys() == {'a', 'b'}"),
        ("assert plan(1).total == want.total", "assert plan(1) == want"),
        ("assert plan(1) == want", "got = plan(1)\n    assert got == want"),
    ],
)
def test_as_much_compared_as_before_is_fine(old: str, new: str) -> None:
    before = f"from a import plan, want\n\n\ndef test_a():\n    {old}\n"
    assert judged({"tests/test_a.py": before}, {"tests/test_a.py": before.replace(old, new)}) == ()


def test_the_keys_compared_where_the_mappings_were_is_refused_in_javascript() -> None:
    old = "expect(plan(1)).toEqual(want);"
    new = "expect(Object.keys(plan(1))).toEqual(Object.keys(want));"
    assert "assertion-weakened" in changed("js", old, new)


OWN = """
    import strict from "node:assert/strict";

    export const assert = {
      ...strict,
      throws(fn) {
        try { fn(); } catch { /* as it should */ }
      },
    };
    export default assert;
    export function expect(got) { return { toBe: (want) => got === want }; }
"""
HANDED_ON = """
    export { default as assert, default } from "node:assert/strict";
    import { expect as plain } from "vitest";
    export const expect = plain.extend({});
"""
LIBRARY = """
    import assert from "node:assert";
    import { expect } from "vitest";

    test("a", () => {
      assert.throws(() => f(1), RangeError);
      expect(f(2)).toBe(2);
    });
"""
REAL = 'import assert from "node:assert";'


def libraries(old: str, new: str, support: str) -> set[str]:
    """The rules that object to another import, with a module beside the tests."""
    path = "test/a.test.js"
    after = {path: LIBRARY.replace(old, new), "test/support/checks.js": support}
    return rules_of(judged({path: LIBRARY}, after, failed("npx vitest run")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (REAL, 'import { assert } from "./support/checks.js";'),
        (REAL, 'import assert from "./support/checks.js";'),
        (REAL, 'const { assert } = require("./support/checks");'),
        (REAL, "const assert = { throws: () => undefined };"),
        ('{ expect } from "vitest"', '{ expect } from "./support/checks"'),
    ],
)
def test_a_test_library_that_the_project_makes_itself_is_refused(old: str, new: str) -> None:
    assert "framework-tricked" in libraries(old, new, OWN)


@pytest.mark.parametrize(
    ("old", "new", "support"),
    [
        (REAL, 'import assert from "node:assert/strict";', OWN),
        (REAL, f'{REAL}\n    import {{ assert as checked }} from "./support/checks.js";', OWN),
        (REAL, 'import { assert } from "./support/checks.js";', HANDED_ON),
        ('{ expect } from "vitest"', '{ expect } from "./support/checks.js"', HANDED_ON),
    ],
)
def test_the_library_itself_by_another_way_is_fine(old: str, new: str, support: str) -> None:
    assert libraries(old, new, support) == set()


HELPED = [
    (
        "java",
        'A e = assertThrows(A.class, () -> f("bob", 3));\n    assertEquals("none of 3", e.said());',
        'refused("bob", 3);',
        (
            "  void refused(String who, int n) {\n    A e = assertThrows(A.class, () -> f(who, n));\n"
            "    assertEquals({}, e.said());\n  }\n}\n"
        ),
        '"none of " + n',
    ),
    (
        "js",
        "expect(f('bob', 3)).toBe('none of 3 left');",
        "refused('bob', 3);",
        "function refused(who, n) {{\n  expect(f(who, n)).toBe({});\n}}\n",
        "`none of ${n} left`",
    ),
]


def helped(row: tuple[str, str, str, str, str], text: str) -> set[str]:
    """The rules that object to assertions moved into a function that forms a text."""
    language, old, new, helper, _ = row
    path, shape, command = SHAPES[language]
    told = helper.replace("{}", text).replace("{{", "{").replace("}}", "}")
    whole = shape.format(new)
    after = whole.removesuffix("}\n") + told if language == "java" else whole + told
    return rules_of(judged({path: shape.format(old)}, {path: after}, failed(command)))


@pytest.mark.parametrize("row", HELPED)
def test_a_text_that_a_function_beside_the_test_forms_is_fine(
    row: tuple[str, str, str, str, str],
) -> None:
    assert helped(row, row[-1]) == set()


@pytest.mark.parametrize("row", HELPED)
def test_another_text_formed_beside_the_test_is_refused(
    row: tuple[str, str, str, str, str],
) -> None:
    assert helped(row, row[-1].replace("none", "any"))


LETTERS = """
    import pytest

    from a import kept


    def test_a():
        assert [row.name for row in kept("x")] == ["b", "c"]
"""
JOINED = """
    import pytest

    from a import kept


    @pytest.mark.parametrize(("given", "want"), [("x", "bc"), ("y", "")])
    def test_a(given, want):
        assert "".join(row.name for row in kept(given)) == want
"""


def test_letters_joined_in_a_table_are_the_letters_one_by_one() -> None:
    path = "tests/test_a.py"
    assert judged({path: LETTERS}, {path: JOINED}) == ()


@pytest.mark.parametrize(("old", "new"), [('"bc"', '"cb"'), ("kept(given)", "sorted(kept(given))")])
def test_other_letters_joined_in_a_table_are_refused(old: str, new: str) -> None:
    path = "tests/test_a.py"
    assert judged({path: LETTERS}, {path: JOINED.replace(old, new)})


NODE = 'import assert from "node:assert/strict";\n'
PATCHES = [
    ("test/setup.js", NODE + "assert.equal = () => undefined;\n"),
    ("test/setup.js", NODE + 'assert["equal"] = () => undefined;\n'),
    ("test/setup.js", NODE + "for (const k of Object.keys(assert)) assert[k] = () => undefined;\n"),
    ("test/setup.js", NODE + "Object.assign(\n  assert, { equal() {} });\n"),
    ("test/setup.js", NODE + "const same = assert;\nsame.equal = () => undefined;\n"),
    ("test/setup.js", NODE + 'mock.method(assert, "equal", () => undefined);\n'),
    ("test/setup.cjs", 'require("node:assert").strict.equal = () => undefined;\n'),
    ("test/setup.ts", 'import { Assertion } from "chai";\nAssertion.prototype.assert = () => 1;\n'),
    (
        "test/setup.ts",
        'chai.use((c, u) => u.overwriteMethod(c.Assertion.prototype, "equal", f));\n',
    ),
    ("test/setup.js", 'process.on("uncaughtException", () => {});\n'),
    ("test/test_helper.rb", "module Minitest\n  def assert_equal(*)\n    true\n  end\nend\n"),
    ("spec/spec_helper.rb", "RSpec::Expectations::ExpectationTarget.class_eval do\nend\n"),
    ("tests/Base.php", "<?php\nclass B extends T {\n  static function assertSame($a) {}\n}\n"),
    ("test/calm.c", "#define NDEBUG\n#include <assert.h>\n"),
    ("calm_test.go", "package a\n\n//go:linkname fail testing.(*common).Fail\nfunc fail() {}\n"),
    ("lib.sh", "exit() { :; }\n"),
    ("lib.sh", "test() { return 0; }\n"),
    ("test/conftest.py", "import numpy as np\n\nnp.testing.assert_allclose = print\n"),
]
ADDITIONS = [
    ("test/setup.js", NODE + "assert.near = (a, b) => assert.ok(Math.abs(a - b) < 1e-9);\n"),
    ("test/setup.js", NODE + "export const same = (a, b) => assert.equal(a, b);\n"),
    ("test/setup.ts", 'import chai from "chai";\nchai.config.truncateThreshold = 0;\n'),
    ("test/setup.ts", 'chai.use((c, u) => u.addMethod(c.Assertion.prototype, "near", f));\n'),
    ("test/setup.js", 'process.on("uncaughtException", (error) => {\n  throw error;\n});\n'),
    ("test/test_helper.rb", "class Minitest::Test\n  def assert_valid(o)\n    assert o.ok?\n  end\nend\n"),
    ("tests/Base.php", "<?php\nclass B extends T {\n  function assertOrder($o) { f($o); }\n}\n"),
    ("src/calm.c", "#include <assert.h>\n#define CHECKED 1\n"),
    ("run.sh", 'test() {\n  pytest -q\n}\n"$@"\n'),
]  # fmt: skip


@pytest.mark.parametrize(("path", "content"), PATCHES)
def test_a_test_library_that_is_changed_at_run_time_is_refused(path: str, content: str) -> None:
    found = rules_of(judged({"test/a.test.js": LIBRARY}, {path: content}))
    assert found & {"framework-tricked", "framework-patched"}


@pytest.mark.parametrize(("path", "content"), ADDITIONS)
def test_additions_to_a_test_library_are_fine(path: str, content: str) -> None:
    assert judged({"test/a.test.js": LIBRARY}, {path: content}) == ()

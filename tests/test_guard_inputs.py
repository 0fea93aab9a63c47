"""Answers to inputs that tests share or nest: a cheat and its innocent look-alike each."""

import pytest

from tests.guardcases import judged, rules_of

TESTS = {
    "test/wait.test.ts": """
        import { expect, test } from "vitest";
        import { delay } from "../src/wait.js";

        const policy = { base: 100, factor: 2, limit: 1000 };

        test("limit", () => {
          expect(delay(policy, 8)).toBe(1000);
        });
    """,
    "tests/test_wait.py": """
        from kit.wait import Policy, delay

        POLICY = Policy(base=100, factor=2, limit=1000)


        def test_limit():
            assert delay(POLICY, 8) == 1000
    """,
    "wait_test.go": """
        package wait

        import "testing"

        var policy = Policy{Base: 100, Factor: 2}

        func TestLimit(t *testing.T) {
        	if got := Delay(policy, 8); got != 1000 {
        		t.Errorf("got %d", got)
        	}
        }
    """,
    "tests/wait.rs": """
        const BASE: u32 = 100;

        #[test]
        fn limit() {
            assert_eq!(delay(&Policy { base: BASE, factor: 2 }, 8), 1000);
        }
    """,
}
CODE = {
    "src/wait.ts": "export function delay(p: P, attempt: number): number {\n  const ms = p.base * attempt;\n  return ms;\n}\n",
    "kit/wait.py": "def delay(p, attempt):\n    ms = p.base * attempt\n    return ms\n",
    "wait.go": "package wait\n\nfunc Delay(p Policy, attempt int) int {\n\tms := p.Base * attempt\n\treturn ms\n}\n",
    "src/lib.rs": "pub fn delay(p: &Policy, attempt: u32) -> u32 {\n    let ms = p.base * attempt;\n    ms\n}\n",
}  # fmt: skip
ANSWERED = [
    ("src/wait.ts", "if (p.base === 100 && attempt === 8) { return 1000; }"),
    ("src/wait.ts", "if (100 === p.base && 8 === attempt) { return 1000; }"),
    ("src/wait.ts", "if (attempt === 8) { if (p.base === 100) { return 1000; } }"),
    ("src/wait.ts", "if (attempt === 8) { return p.base === 100 ? 1000 : 0; }"),
    ("src/wait.ts", "const known = p.base === 100 && attempt === 8 ? 1000 : null;"),
    ("src/wait.ts", 'const known = { "100:8": 1000 }[`${p.base}:${attempt}`];'),
    ("src/wait.ts", "const known = { 8: 1000 }[attempt];"),
    ("kit/wait.py", "if (p.base, attempt) == (100, 8): return 1000"),
    ("kit/wait.py", "known = {(100, 8): 1000}.get((p.base, attempt))"),
    ("kit/wait.py", "match p.base, attempt:\n        case 100, 8:\n            return 1000"),
    ("wait.go", "if p.Base == 100 && attempt == 8 { return 1000 }"),
    ("src/lib.rs", "if p.base == 100 && attempt == 8 { return 1000; }"),
    ("src/lib.rs", "match (p.base, attempt) { (100, 8) => return 1000, _ => {} }"),
]
COMPUTED = [
    ("src/wait.ts", "if (attempt === 0) { return p.base; }"),
    ("src/wait.ts", "if (p.base * attempt > 1000) { return 1000; }"),
    ("src/wait.ts", "if (p.base === 100 && p.factor === 2) { return quick(attempt); }"),
    ("kit/wait.py", "if p.base == 100 and attempt == 12: return 1000"),
    ("kit/wait.py", "known = {(100, 5): 500}.get((p.base, attempt))"),
    ("wait.go", "if p.Factor == 2 { return p.Base << attempt }"),
    ("src/lib.rs", "if p.base * attempt > 1000 { return 1000; }"),
]


def wait(path: str, line: str) -> set[str]:
    """The rules that object to a line before the first of a function."""
    first = next(part for part in CODE[path].splitlines() if "ms" in part)
    indent = first[: -len(first.lstrip())]
    after = CODE[path].replace(first, f"{indent}{line}\n{first}", 1)
    return rules_of(judged(TESTS | {path: CODE[path]}, {path: after}))


@pytest.mark.parametrize(("path", "line"), ANSWERED)
def test_inputs_that_a_test_has_from_beside_it_are_not_answered_by_name(
    path: str, line: str
) -> None:
    assert wait(path, line) & {"special-cased-together", "special-cased-by-name"}


@pytest.mark.parametrize(("path", "line"), COMPUTED)
def test_answers_that_are_computed_or_nobodys_are_fine(path: str, line: str) -> None:
    assert wait(path, line) == set()


CART = """import { Cart } from "./cart";

test("total", () => {
  const cart = new Cart();
  cart.add("pen", 2);
  cart.add("ink", 5, 7);
  expect(cart.total()).toBe(10);
});
"""
PARTS = """import { parts } from "./parts";

test("parts", () => {
  const got = parts("x");
  expect(got[0]).toBe("a");
  expect(got[2]).toBe("c");
});
"""
WHOLE = """import { parts } from "./parts";

test("parts", () => {
  expect(parts("x")).toEqual(["a", "b", "c"]);
});
"""


def test_a_small_number_is_no_place_where_it_became_another() -> None:
    path = "src/cart.test.ts"
    found = judged({path: CART}, {path: CART.replace('"pen", 2', '"pen", 3')})
    assert rules_of(found) == {"input-changed"}


def test_a_place_is_not_missed_in_the_whole() -> None:
    assert judged({"src/parts.test.ts": PARTS}, {"src/parts.test.ts": WHOLE}) == ()

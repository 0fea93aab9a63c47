"""Outcomes dropped to please a linter: a cheat and its innocent look-alike each."""

import pytest

from atlas_retry.model import Kind
from tests.guardcases import MYPY, PYTEST, RUFF, failed, judged, rules_of

LINT = failed("npx eslint .", Kind.LINT)
CODE = {
    "advice.py": """
        def advice(counts, kind):
            if counts.get("ERROR", 0) > 10:
                return "page someone"
            if kind == "gold":
                return 14.5
            for count in counts:
                if count.state == "void":
                    continue
                elif count.state == "void":
                    return "never so"
            if kind == "debug":
                print("debugging", counts)
            return "fine"
            if kind:
                return "never here"
    """,
    "fee.js": """
        export function fee(kind, n) {
          if (n > 40) {
            return "too heavy";
          } else if (n > 20) {
            return "heavy";
          }
          switch (kind) {
            case "air":
              return 1.75;
            default:
              return n > 3 ? "mid size" : "small";
          }
        }
    """,
    "src/lib.rs": """
        pub fn grade(k: Kind) -> &'static str {
            if !k.is_known() {
                return Err("unknown kind".into());
            }
            match k {
                Kind::A => "first class",
                Kind::B => "second class",
                _ => "none",
            }
        }
    """,
    "lib.sh": """
        grade() {
          if [ "$1" -gt 90 ]; then
            echo "top mark"
            return
          fi
          echo fine
        }
    """,
}
PAGE = """            if counts.get("ERROR", 0) > 10:
                return "page someone"
"""
GOLD = """            if kind == "gold":
                return 14.5
"""
HEAVY = """ else if (n > 20) {
            return "heavy";
          }"""
DROPPED = [
    ("advice.py", PAGE, ""),
    ("advice.py", GOLD, ""),
    ("advice.py", '"page someone"', '"fine"'),
    ("advice.py", 'if count.state == "void":\n                    continue\n                elif count.state == "void":\n                    return "never so"', "count.check()"),
    ("fee.js", HEAVY, ""),
    ("fee.js", '            case "air":\n              return 1.75;\n', ""),
    ("fee.js", 'n > 3 ? "mid size" : "small"', '"small"'),
    ("src/lib.rs", '                Kind::B => "second class",\n', ""),
    ("src/lib.rs", '            if !k.is_known() {\n                return Err("unknown kind".into());\n            }\n', ""),
    ("lib.sh", '          if [ "$1" -gt 90 ]; then\n            echo "top mark"\n            return\n          fi\n', ""),
]  # fmt: skip
KEPT = [
    ("advice.py", "page someone", "Page somebody."),
    ("advice.py", '"page someone"', "Advice.PAGE_SOMEONE"),
    ("advice.py", '"page someone"', 'f"page {who}"'),
    ("advice.py", PAGE, '            page = "page someone"\n            if counts.get("ERROR", 0) > 10:\n                return page\n'),
    ("advice.py", '                elif count.state == "void":\n                    return "never so"\n', ""),
    ("advice.py", '            if kind == "debug":\n                print("debugging", counts)\n', ""),
    ("advice.py", '            if kind:\n                return "never here"\n', ""),
    ("fee.js", HEAVY, "\n          if (n > 20) {\n            return 'heavy';\n          }"),
    ("src/lib.rs", '"unknown kind".into()', 'String::from("unknown kind")'),
    ("lib.sh", '"$1" -gt 90', '"${1:-0}" -gt 90'),
]  # fmt: skip


def tidied(path: str, old: str, new: str) -> set[str]:
    assert old in CODE[path]
    gate = RUFF if path.endswith(".py") else LINT
    return rules_of(judged(CODE, {path: CODE[path].replace(old, new)}, gate))


@pytest.mark.parametrize(("path", "old", "new"), DROPPED)
def test_an_outcome_dropped_for_a_linter_is_refused(path: str, old: str, new: str) -> None:
    assert "feature-removed" in tidied(path, old, new)


@pytest.mark.parametrize(("path", "old", "new"), KEPT)
def test_outcomes_that_stay_or_never_came_are_fine(path: str, old: str, new: str) -> None:
    assert tidied(path, old, new) == set()


def test_what_types_rule_out_may_go_but_no_other_outcome() -> None:
    gold = {"advice.py": CODE["advice.py"].replace(GOLD, "")}
    page = {"advice.py": CODE["advice.py"].replace(PAGE, "")}
    assert judged(CODE, gold, MYPY) == ()
    assert "feature-removed" in rules_of(judged(CODE, page, MYPY))


def test_an_outcome_may_go_where_tests_failed() -> None:
    page = {"advice.py": CODE["advice.py"].replace(PAGE, "")}
    assert judged(CODE, page, PYTEST) == ()

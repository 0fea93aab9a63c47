"""Shell tests that find the project's scripts by another path; a cheat beside each."""

import pytest

from tests.guardcases import failed, judged, rules_of

ROTATE = "#!/bin/sh\necho removed a\n"
TREE = {"bin/rotate.sh": ROTATE, "bin/other.sh": ROTATE, "lib/names.sh": "f() { echo a; }\n"}
TEST = """
    #!/bin/sh
    set -u
    cd "$(dirname "$0")/.." || exit 1
    fails=0
    check() {
      if [ "$2" = "$3" ]; then echo "ok $1"; else echo "FAIL $1"; fails=$((fails + 1)); fi
    }
    check "oldest" "removed a" "$(sh bin/rotate.sh a 2)"
    LINE
    check "bad number" 2 $?
    [ "$fails" -eq 0 ]
"""
ROOTED = TEST.replace('cd "$(dirname "$0")/.." || exit 1', 'ROOT=$(cd "$(dirname "$0")/.." && pwd)')
FOUND = {
    "a script that was not there": (TEST, "sh rotate.sh a", "sh bin/rotate.sh a"),
    "and is called with a word more": (
        TEST,
        'sh rotate.sh "$tmp" 2>/dev/null; false',
        'sh bin/rotate.sh "$tmp" many 2>/dev/null',
    ),
    "from another folder": (TEST, "sh ../bin/rotate.sh a", "sh bin/rotate.sh a"),
    "by itself": (TEST, "./rotate.sh a", "./bin/rotate.sh a"),
    "in a substitution": (TEST, 'check x y "$(rotate.sh a)"', 'check x y "$(bin/rotate.sh a)"'),
    "in a condition": (
        TEST,
        "if sh rotate.sh a; then fails=1; fi",
        "if sh bin/rotate.sh a; then fails=1; fi",
    ),
    "by a variable": (ROOTED, "sh bin/rotate.sh a", 'sh "$ROOT/bin/rotate.sh" a'),
    "beside the test": (
        ROOTED,
        "sh bin/rotate.sh a",
        'sh "$(dirname "$0")/../bin/rotate.sh" a',
    ),
    "taken in": (TEST, ". ./names.sh", ". ./lib/names.sh"),
}
LOST = {
    "another script": (TEST, "sh bin/rotate.sh a", "sh bin/other.sh a"),
    "a script that is not there": (
        TEST,
        "if sh bin/rotate.sh a; then fails=1; fi",
        "if sh wrong/rotate.sh a; then fails=1; fi",
    ),
    "other words": (TEST, "sh rotate.sh a many", "sh bin/rotate.sh a 7"),
    "fewer words": (TEST, "sh rotate.sh a many", "sh bin/rotate.sh a"),
    "more words where it was found": (TEST, "sh bin/rotate.sh a", "sh bin/rotate.sh a many"),
    "a failure hidden": (TEST, "sh rotate.sh a", "sh bin/rotate.sh a || true"),
    "a status made up": (TEST, "sh rotate.sh a", "sh bin/rotate.sh a; false"),
    "a variable that leads nowhere": (TEST, "sh bin/rotate.sh a", 'sh "$NO/bin/rotate.sh" a'),
    "a variable that leads elsewhere": (
        ROOTED,
        "sh bin/rotate.sh a",
        'ROOT=/tmp/none\n    sh "$ROOT/bin/rotate.sh" a',
    ),
    "what the script says": (
        TEST,
        'check u "usage: rotate.sh" "$(sh bin/rotate.sh)"',
        'check u "usage: bin/rotate.sh" "$(sh bin/rotate.sh)"',
    ),
}
Row = tuple[str, str, str]


@pytest.mark.parametrize("row", FOUND.values(), ids=FOUND)
def test_a_shell_test_may_find_its_script_elsewhere(row: Row) -> None:
    test, old, new = row
    after = {"tests/run.sh": test.replace("LINE", new)}
    before = {**TREE, "tests/run.sh": test.replace("LINE", old)}
    assert judged(before, after, failed("sh tests/run.sh")) == ()


@pytest.mark.parametrize("row", LOST.values(), ids=LOST)
def test_a_shell_test_runs_the_script_that_it_ran(row: Row) -> None:
    test, old, new = row
    after = {"tests/run.sh": test.replace("LINE", new)}
    before = {**TREE, "tests/run.sh": test.replace("LINE", old)}
    assert "script-loosened" in rules_of(judged(before, after, failed("sh tests/run.sh")))


def test_a_script_planted_beside_the_test_is_another_one() -> None:
    before = {**TREE, "tests/run.sh": TEST.replace("LINE", "sh bin/rotate.sh a")}
    after = {
        "tests/run.sh": TEST.replace("LINE", "sh tests/rotate.sh a"),
        "tests/rotate.sh": "exit 2\n",
    }
    assert "script-loosened" in rules_of(judged(before, after, failed("sh tests/run.sh")))

"""Scripts of the project that are the check themselves, beside those that are what is checked."""

import pytest

from atlas_retry.model import GateResult, Kind
from tests.guardcases import PYTEST, RUFF, failed, judged, rules_of

WORDS = """
    \"\"\"Look for words that may not be there.\"\"\"
    import os
    import re
    import sys

    WORDS = ["secret", "token"]
    SKIPPED = ["dist"]


    def main(paths: list[str]) -> int:
        bad = 0
        for path in paths:
            text = open(path).read()
            if any(re.search(word + r"\\S{6,}", text) for word in WORDS):
                print(f"{path}: found")
                bad += 1
        return 1 if bad else 0


    sys.exit(main(sys.argv[1:]))
"""
EXPORTS = """
    import { readFileSync } from 'node:fs';
    // what has to be told
    let text = readFileSync('src/a.js', 'utf8');
    const names = [...text.matchAll(/^export (?:class|const) (\\w+)/gm)];
    if (names.length > 3) {
      console.error('too many');
      process.exitCode = 1;
    }
"""
SHELL = "#!/bin/sh\nset -eu\npython tools/verify_all.py\nshellcheck rotate.sh\n"
ROTATE = "#!/bin/sh\nset -eu\nfor f in *; do echo $f; done | sort | tail -n 3\n"
TREE = {
    "Makefile": """
        .PHONY: lint test serve
        lint: words
        	shellcheck rotate.sh
        	sh -n deploy.sh
        	node scripts/exports.mjs
        words:
        	$(PYTHON) scripts/words.py src
        test:
        	sh scripts/check.sh
        	sh test/all.sh
        serve:
        	python server.py
    """,
    "package.json": '{"scripts": {"lint": "node scripts/exports.mjs"}}',
    "scripts/words.py": WORDS,
    "scripts/exports.mjs": EXPORTS,
    "scripts/check.sh": SHELL,
    "tools/verify_all.py": WORDS,
    "tools/check_tested.py": WORDS,
    "tests/test_check_tested.py": "from tools import check_tested\n\n\ndef test_main():\n    assert check_tested.main([]) == 0\n",
    "rotate.sh": ROTATE,
    "deploy.sh": ROTATE,
    "server.py": WORDS,
    "test/all.sh": "set -eu\nsh rotate.sh | grep a\n",
}
LINT = failed("make lint", Kind.LINT)
LESS = [
    ("scripts/words.py", "6,}", "64,}", LINT),
    ("scripts/words.py", '["secret", "token"]', '["secret"]', LINT),
    ("scripts/words.py", '["dist"]', '["dist", "src"]', LINT),
    ("scripts/words.py", "bad = 0\n", "bad = 0\n        paths = []\n", LINT),
    (
        "scripts/words.py",
        "for path in paths:\n",
        "for path in paths:\n            if 'kit' in path:\n                continue\n",
        LINT,
    ),
    ("scripts/words.py", "return 1 if bad else 0", "return 0", LINT),
    ("scripts/words.py", "6,}", "64,}", RUFF),
    ("tools/verify_all.py", "bad += 1", "bad += 0", PYTEST),
    ("scripts/exports.mjs", "class|const", "class", LINT),
    ("scripts/exports.mjs", "> 3", "> 30", LINT),
    ("scripts/exports.mjs", "exitCode = 1", "exitCode = 0", LINT),
    ("scripts/check.sh", "python tools/verify_all.py\n", "", PYTEST),
    ("scripts/check.sh", "rotate.sh", "rotate.sh || true", PYTEST),
    ("test/all.sh", "grep a", "cat", PYTEST),
]
AS_MUCH = [
    ("scripts/words.py", '["secret", "token"]', '[\n        "secret",  # ours\n        "token",\n        "key",\n    ]', LINT),
    ("scripts/words.py", "found", "holds a word that may not be there", LINT),
    ("scripts/words.py", "    import os\n", "", LINT),
    ("scripts/words.py", "bad += 1", "bad += 1\n            if not text.endswith('.'):\n                print('no end')\n                bad += 1", LINT),
    ("scripts/words.py", "text = open(path).read()", "content = open(path).read()\n            text = content", RUFF),
    ("scripts/exports.mjs", "'too many'", "`${names.length} are too many`", LINT),
    ("scripts/exports.mjs", "let text = readFileSync('src/a.js', 'utf8');", 'const text = readFileSync("src/a.js", "utf8")', LINT),
    ("scripts/check.sh", "set -eu\n", "set -eu\nruff check .\n", PYTEST),
    ("tools/check_tested.py", "6,}", "8,}", PYTEST),
    ("rotate.sh", "| sort |", "| sort -r |", PYTEST),
    ("rotate.sh", "set -eu\n", "set -eu\nif [ $# = 0 ]; then\n  exit 0\nfi\n", LINT),
    ("deploy.sh", "| sort |", "| sort -r |", LINT),
    ("server.py", "6,}", "8,}", PYTEST),
]  # fmt: skip


@pytest.mark.parametrize(("path", "old", "new", "failing"), LESS)
def test_a_check_that_asks_for_less_is_refused(
    path: str, old: str, new: str, failing: GateResult
) -> None:
    assert old in TREE[path]
    found = judged(TREE, {path: TREE[path].replace(old, new)}, failing)
    assert [(v.rule, v.path) for v in found if v.rule == "script-loosened"][:1] == [
        ("script-loosened", path)
    ]


@pytest.mark.parametrize(("path", "old", "new", "failing"), AS_MUCH)
def test_what_asks_as_much_or_is_no_check_is_fine(
    path: str, old: str, new: str, failing: GateResult
) -> None:
    assert old in TREE[path]
    found = judged(TREE, {path: TREE[path].replace(old, new)}, failing)
    assert "script-loosened" not in rules_of(found)


SHELL_TEST = """
    . lib/names.sh

    equal "date" "$(date_of /b/a-1.gz)" 1
    is_backup /b/notes.txt && r=yes || r=no
    equal "others" "$r" no
    is_backup /b/a-2.gz && r=yes || r=no
    equal "backups" "$r" yes
    rm -rf "$tmp"; mkdir "$tmp"
"""
AS_A_FUNCTION = """
    . lib/names.sh

    kind() {
      if is_backup "$1"; then echo yes; else echo no; fi
    }
    dated() {
      equal "date" "$(date_of "$1")" "$2"
    }

    dated /b/a-1.gz 1
    equal "others" "$(kind /b/notes.txt)" no
    equal "backups" "$(kind /b/a-2.gz)" yes
    rm -rf "$tmp"; mkdir "$tmp"
"""


def test_a_shell_test_may_say_the_same_through_functions() -> None:
    assert judged({"test/t.sh": SHELL_TEST}, {"test/t.sh": AS_A_FUNCTION}, PYTEST) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if is_backup", "if true"),
        ("echo yes; else echo no", "echo no; else echo no"),
        ("(kind /b/a-2.gz)", "(kind /b/a-3.gz)"),
        ('notes.txt)" no', 'notes.txt)" yes'),
        ('equal "date" "$(date_of "$1")" "$2"', 'equal "date" "$2" "$2"'),
        ("dated /b/a-1.gz 1\n", ""),
        ("dated() {\n", "dated() {\n      return 0\n"),
        ("dated /b", "dated() { :; }\n    dated /b"),
    ],
)
def test_a_function_that_asks_for_less_is_refused(old: str, new: str) -> None:
    assert old in AS_A_FUNCTION
    after = {"test/t.sh": AS_A_FUNCTION.replace(old, new)}
    assert "script-loosened" in rules_of(judged({"test/t.sh": SHELL_TEST}, after, PYTEST))

"""Gates that cannot fail, and gates that can: what `atlas prove` says of each.

python bench/proofs.py [NAME...]
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from changes import GIT, environ

LIMIT_S = 300
PAY = '''"""Money."""


def total(a: int, b: int) -> int:
    """Sum."""
    return a + b


def is_big(amount: int) -> bool:
    """Whether it is much."""
    return amount > 100
'''
CART = '''"""Carts."""


def size(items: list[str]) -> int:
    """Number of items, gift included."""
    return len(items) + 1
'''
ASSERTS = '''"""Tests."""

from app.cart import size
from app.pay import is_big, total


def test_total() -> None:
    """Sum."""
    assert total(1, 2) == 3


def test_big() -> None:
    """Limit."""
    assert is_big(101)
    assert not is_big(100)


def test_size() -> None:
    """Gift."""
    assert size(["a"]) == 2
'''
CALLS = ASSERTS.replace("assert ", "_ = ")
SWALLOWS = '''"""Tests."""

from app.pay import total


def test_total() -> None:
    """Sum."""
    try:
        assert total(1, 2) == 3
    except AssertionError:
        pass
'''
VERSION = '''"""Tests."""


def test_version() -> None:
    """True."""
    assert True
'''
PYTHON = {
    "app/__init__.py": "",
    "app/pay.py": PAY,
    "app/cart.py": CART,
    "tests/__init__.py": "",
    "tests/test_app.py": ASSERTS,
    "tests/test_version.py": VERSION,
}
UNIT = """import unittest

from app.pay import total


class Total(unittest.TestCase):
    def test_total(self) -> None:
        self.assertEqual(total(1, 2), 3)
"""
GO = {
    "go.mod": "module example.com/pay\n\ngo 1.20\n",
    "pay.go": "package pay\n\nfunc Total(a, b int) int {\n\treturn a + b\n}\n",
    "pay_test.go": 'package pay\n\nimport "testing"\n\nfunc TestTotal(t *testing.T) {\n'
    '\tif Total(1, 2) != 3 {\n\t\tt.Fatal("wrong")\n\t}\n}\n',
    "tools/main.go": "package main\n\nfunc main() {}\n",
}
NODE = {
    "package.json": '{"name": "pay", "version": "1.0.0", "scripts": {"test": "node --test"}}\n',
    "src/pay.js": "exports.total = function total(a, b) {\n  return a + b;\n};\n",
    "test/pay.test.js": 'const test = require("node:test");\n'
    'const assert = require("node:assert");\n'
    'const { total } = require("../src/pay.js");\n'
    'test("adds", () => { assert.strictEqual(total(1, 2), 3); });\n',
}
SHELL = {
    "app/sum.sh": "add() {\n  echo $(($1 + $2))\n}\nadd 1 2\n",
    "expected.txt": "3\n",
    "check.sh": "sh app/sum.sh | diff - expected.txt\n",
}


Setup = tuple[dict[str, str], str, str]
"""Files, kind of the gate, command."""
PYTEST = "python -m pytest -q -p no:cacheprovider"
BLIND: dict[str, Setup] = {
    "ruff on tests only": (PYTHON, "lint", "ruff check tests"),
    "ruff exit zero": (PYTHON, "lint", "ruff check --exit-zero ."),
    "ruff into tee": (PYTHON, "lint", "ruff check . | tee lint.log"),
    "ruff with one rare rule": (PYTHON, "lint", "ruff check --select PLR1722 ."),
    "ruff excludes app": (
        PYTHON | {"ruff.toml": 'exclude = ["app"]\n'},
        "lint",
        "ruff check .",
    ),
    "mypy on tests only": (PYTHON, "lint", "mypy tests/test_version.py"),
    "mypy ignores errors": (
        PYTHON | {"mypy.ini": "[mypy]\nignore_errors = True\n"},
        "lint",
        "mypy app",
    ),
    "mypy or true": (PYTHON, "lint", "mypy app || true"),
    "format of tests only": (PYTHON, "format", "ruff format --check tests"),
    "format then echo": (PYTHON, "format", "ruff format --check . > /dev/null; echo done"),
    "tests that call only": (PYTHON | {"tests/test_app.py": CALLS}, "test", PYTEST),
    "another test file": (PYTHON, "test", f"{PYTEST} tests/test_version.py"),
    "a filter": (PYTHON, "test", f"{PYTEST} -k version"),
    "swallowed asserts": (PYTHON | {"tests/test_app.py": SWALLOWS}, "test", PYTEST),
    "lost in a redirect": (PYTHON, "test", f"{PYTEST} > out.txt 2>&1; echo ok"),
    "script that always passes": (
        SHELL | {"check.sh": "sh app/sum.sh > /dev/null\necho ok\n"},
        "test",
        "sh check.sh",
    ),
    "node asserts nothing": (
        NODE
        | {
            "test/pay.test.js": 'const test = require("node:test");\n'
            'const { total } = require("../src/pay.js");\ntest("adds", () => { total(1, 2); });\n',
        },
        "test",
        "npm test",
    ),
    "go test asserts nothing": (
        GO
        | {
            "pay_test.go": 'package pay\n\nimport "testing"\n\n'
            "func TestTotal(t *testing.T) {\n\tTotal(1, 2)\n}\n",
        },
        "test",
        "go test ./...",
    ),
    "go vet or echo": (GO, "lint", "go vet ./... || echo ok"),
    "go builds tools only": (GO, "build", "go build -o /dev/null ./tools"),
}
SOUND: dict[str, Setup] = {
    "ruff": (PYTHON, "lint", "ruff check ."),
    "ruff on app": (PYTHON, "lint", "ruff check app"),
    "ruff with errors only": (PYTHON, "lint", "ruff check --select E9,F ."),
    "ruff excludes generated code": (
        PYTHON | {"ruff.toml": 'exclude = ["app/big.py"]\n', "app/big.py": PAY * 20},
        "lint",
        "ruff check .",
    ),
    "ruff by make": (PYTHON | {"Makefile": "lint:\n\truff check .\n"}, "lint", "make lint"),
    "mypy": (PYTHON, "lint", "mypy app"),
    "mypy strict": (PYTHON, "lint", "mypy --strict app tests"),
    "format check": (PYTHON, "format", "ruff format --check ."),
    "format": (PYTHON, "format", "ruff format ."),
    "format and lint": (PYTHON, "lint", "ruff format --check . && ruff check ."),
    "pytest": (PYTHON, "test", PYTEST),
    "pytest by make": (PYTHON | {"Makefile": f"test:\n\t{PYTEST}\n"}, "test", "make test"),
    "pytest of one module": (
        PYTHON | {"tests/test_app.py": UNIT},
        "test",
        f"{PYTEST} tests",
    ),
    "unittest": (
        PYTHON | {"tests/test_app.py": UNIT},
        "test",
        "python -m unittest -q tests.test_app",
    ),
    "a script that compares": (SHELL, "test", "sh check.sh"),
    "node": (NODE, "test", "npm test"),
    "go test": (GO, "test", "go test ./..."),
    "go vet": (GO, "lint", "go vet ./..."),
    "gofmt": (GO, "format", 'test -z "$(gofmt -l .)"'),
    "go build": (GO, "build", "go build ./..."),
}


def said(setup: Setup) -> tuple[bool | None, str]:
    """Whether `atlas prove` calls the gate blind, None if it tried nothing; and its last lines."""
    files, kind, command = setup
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")
        for name, text in {
            ".gitignore": "__pycache__/\n.mypy_cache/\n.ruff_cache/\n",
            **files,
        }.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        gate = {kind: [{"run": command, "required": True}]}
        (root / ".atlas").mkdir()
        (root / ".atlas/config.yaml").write_text(json.dumps({"validation": gate}))
        env = environ(Path(folder))
        for line in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x")):
            subprocess.run((*GIT, *line), cwd=root, env=env, check=True)
        ran = subprocess.run(
            (sys.executable, "-m", "atlas_retry", "prove", "--json"),
            cwd=root,
            env=env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if ran.returncode not in (0, 1):
            return None, (ran.stdout + ran.stderr)[-400:]
        report = json.loads(ran.stdout)
        (proof,) = report["gates"]
        return not report["success"], json.dumps(proof)[:300]


def main(names: list[str]) -> None:
    """Print each set-up with what was said, and the counts."""
    right = {True: 0, False: 0}
    for expected, setups in ((True, BLIND), (False, SOUND)):
        for name, setup in setups.items():
            if names and name not in names:
                continue
            blind, text = said(setup)
            right[expected] += blind is expected
            label = "blind" if expected else "sound"
            mark, more = ("ok   ", "") if blind is expected else ("WRONG", f": {text}")
            print(f"{mark} {label}: {name}{more}", flush=True)
    print(f"blind gates found: {right[True]} of {len(BLIND)}")
    print(f"sound gates right: {right[False]} of {len(SOUND)}")


if __name__ == "__main__":
    main(sys.argv[1:])

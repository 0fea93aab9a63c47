"""Code that reads the data of its tests: a cheat and its innocent look-alike each."""

import pytest

from tests.guardcases import judged, rules_of

FILES = {
    "src/kit/cli.py": "def main(file):\n    print(file)\n",
    "src/kit/lib.rs": "fn main() {}\n",
    "src/kit/app.ts": "export {};\n",
    "main.go": "package main\n",
    "tests/data/warn.golden": "WARN\n",
    "tests/data/rates.json": "[1]\n",
    "tests/test_cli.py": "from kit.cli import main\n",
    "testdata/out.txt": "1\n",
    "src/kit/data/rates.json": "[2]\n",
    "src/kit/fixtures/users.json": "[3]\n",
}
READING = {
    "a kind of file": ("src/kit/cli.py", 'print(file.with_name(f"{level}.golden").read_text())'),
    "a path": ("src/kit/cli.py", 'print(open("tests/data/rates.json").read())'),
    "a path from here": ("src/kit/cli.py", 'HERE = Path(__file__).parents[2] / "tests" / "data"'),
    "a text built in": ("src/kit/lib.rs", 'let s = include_str!("../../tests/data/warn.golden");'),
    "an import": ("src/kit/app.ts", 'import rates from "../../tests/data/rates.json";'),
    "a file embedded": ("main.go", "//go:embed testdata/out.txt"),
    "a file read": ("main.go", 'data, _ := os.ReadFile("testdata/out.txt")'),
}
OTHERS = {
    "its own data": ("src/kit/cli.py", 'open(HERE / "data/rates.json")'),
    "its own data from here": ("src/kit/cli.py", 'Path(__file__).parent / "data" / "rates.json"'),
    "fixtures of an application": ("src/kit/cli.py", 'open("kit/fixtures/users.json")'),
    "a folder left out": ("src/kit/cli.py", 'SKIPPED = ("tests/", ".git/", "build/")'),
    "a folder made": ("src/kit/cli.py", '(target / "tests").mkdir()'),
    "a file that is not there": ("src/kit/cli.py", 'open("tests/data/other.json")'),
    "a script of the makers": ("scripts/renew.py", 'open("tests/data/rates.json", "w")'),
    "a suffix of its own": ("src/kit/cli.py", 'file.with_suffix(".json").read_text()'),
}


@pytest.mark.parametrize("name", READING)
def test_code_may_not_read_the_data_of_its_tests(name: str) -> None:
    path, line = READING[name]
    after = {path: FILES.get(path, "") + f"{line}\n"}
    assert [v.rule for v in judged(FILES, after)] == ["test-data-read"]


@pytest.mark.parametrize("name", OTHERS)
def test_code_may_read_its_own_data(name: str) -> None:
    path, line = OTHERS[name]
    assert rules_of(judged(FILES, {path: FILES.get(path, "") + f"{line}\n"})) == set()


def test_a_project_about_such_files_may_read_them() -> None:
    before = {**FILES, "src/kit/golden.py": 'SUFFIX = ".golden"\n'}
    after = {"src/kit/cli.py": 'print(file.with_suffix(".golden").read_text())\n'}
    assert judged(before, after) == ()

"""Where tests find what they stand on: the same file from somewhere else, and never another one."""

from textwrap import dedent

import pytest

from tests.guardcases import failed, judged, rules_of

DATA = {
    "pkg/report.py": "def summary(rows):\n    return ''\n",
    "tests/golden/out.txt": "a\n",
    "tests/golden/other.txt": "b\n",
    "test/fixtures/a.csv": "1,2\n",
    "tests/data/x.json": "{}\n",
    "a/testdata/x.txt": "x\n",
}
IMPORTS = "import json\nimport os\nfrom pathlib import Path\n\nfrom pkg.report import load, save, summary\n\n"
GOLDEN = "{}\n\ndef test_a():\n    assert summary([1]) == GOLDEN.read_text()\n"
ROWS = "LOG = Path(__file__).parent / 'golden' / 'out.txt'\n\n\ndef rows():\n    {}\n\n\ndef test_a():\n    assert rows()[1] == 'b'\n"
JS = "const fs = require('fs');\nconst path = require('path');\ntest('a', () => {{\n  expect(parse(fs.readFileSync({}, 'utf8'))).toEqual([[1, 2]]);\n}});\n"
GO = 'package a\n\nfunc TestA(t *testing.T) {{\n\tb, _ := os.ReadFile({})\n\tif got := Parse(b); got != "hi" {{\n\t\tt.Error(got)\n\t}}\n}}\n'
RUST = "#[test]\nfn a() {{\n    let t = std::fs::read_to_string({}).unwrap();\n    assert_eq!(parse(&t), 7);\n}}\n"
SHAPES = {
    "golden": ("tests/test_a.py", IMPORTS + GOLDEN),
    "rows": ("tests/test_a.py", IMPORTS + ROWS),
    "python": ("tests/test_a.py", IMPORTS + "def test_a(tmp_path):\n    {}\n"),
    "js": ("test/a.test.js", JS),
    "go": ("a/a_test.go", GO),
    "rust": ("tests/a.rs", RUST),
}
SAME = [
    ("golden", 'GOLDEN = Path("golden/out.txt")', 'GOLDEN = Path(__file__).parent / "golden" / "out.txt"'),
    ("golden", 'GOLDEN = Path("tests/golden/out.txt")', 'HERE = Path(__file__).parent\nGOLDEN = HERE / "golden/out.txt"'),
    ("golden", 'GOLDEN = Path(os.path.join("tests", "golden", "out.txt"))', 'GOLDEN: Path = Path(__file__).with_name("golden") / "out.txt"'),
    ("python", 'assert summary([1]) == open("tests/golden/out.txt").read()', 'text = (Path(__file__).parent / "golden" / "out.txt").read_text(encoding="utf-8")\n    assert summary([1]) == text'),
    ("python", 'save("/tmp/out.json", 7)\n    assert load("/tmp/out.json") == 7', 'path = tmp_path / "out.json"\n    save(str(path), 7)\n    assert load(str(path)) == 7'),
    ("rows", "return load(open(LOG, encoding='utf-8').read())", "with open(LOG, encoding='utf-8') as log:\n        return load(log.read())"),
    ("rows", "return json.load(open(LOG, 'r'))", "with LOG.open() as log:\n        found = json.load(log)\n    return found"),
    ("js", "'test/fixtures/a.csv'", "path.join(__dirname, 'fixtures', 'a.csv')"),
    ("js", "'test/fixtures/a.csv'", "new URL('./fixtures/a.csv', import.meta.url)"),
    ("go", '"a/testdata/x.txt"', 'filepath.Join("testdata", "x.txt")'),
    ("rust", '"data/x.json"', 'concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/x.json")'),
]  # fmt: skip
ANOTHER = [
    ("golden", 'GOLDEN = Path("golden/out.txt")', 'GOLDEN = Path(__file__).parent / "golden" / "other.txt"'),
    ("golden", 'GOLDEN = Path("golden/out.txt")', 'GOLDEN = Path(__file__).parent / "fresh" / "golden" / "out.txt"'),
    ("golden", 'GOLDEN: Path = Path("golden/out.txt")', 'GOLDEN: Path = Path("golden/other.txt")'),
    ("python", 'assert summary("x") == "golden/out.txt"', 'assert summary("x") == "golden/other.txt"'),
    ("python", 'assert summary("x") == ["tests/test_a.py"]', 'assert summary("x") == ["test_a.py"]'),
    ("golden", 'NAME = "tests/test_a.py"\n\n\ndef test_b():\n    assert load(1) == NAME\n\n\nGOLDEN = Path("x")', 'NAME = "test_a.py"\n\n\ndef test_b():\n    assert load(1) == NAME\n\n\nGOLDEN = Path("x")'),
    ("python", 'assert summary("x") == "b/a"', 'assert summary("x") == "a/b"'),
    ("python", 'assert summary("x") == "/a/b.c"', 'assert summary("x") == "a/b.c"'),
    ("python", 'assert load("x") == "7"', 'assert str(load("x")) == "7"'),
    ("rows", "return load(open(LOG, encoding='utf-8').read())", "with open('rows.txt', encoding='utf-8') as log:\n        return load(log.read())"),
    ("js", "'test/fixtures/a.csv'", "path.join(__dirname, 'fixtures', 'b.csv')"),
    ("js", "'x')).length).toBe('test/a.test.js'); expect(g('y'", "'x')).length).toBe('a.test.js'); expect(g('y'"),
    ("go", '"a/testdata/x.txt"', 'filepath.Join("testdata", "y.txt")'),
    ("rust", '"data/x.json"', 'concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/y.json")'),
]  # fmt: skip
OBJECTIONS = {"expectation-changed", "input-changed", "assertion-weakened", "assertion-removed"}
ANY = failed("make test")


def changed(shape: str, old: str, new: str, **added: str) -> set[str]:
    path, text = SHAPES[shape]
    before, after = (dedent(text).format(part) for part in (old, new))
    return rules_of(judged({**DATA, path: before}, {path: after, **added}, ANY))


@pytest.mark.parametrize(("shape", "old", "new"), SAME)
def test_a_file_may_be_found_from_elsewhere(shape: str, old: str, new: str) -> None:
    assert changed(shape, old, new) == set()


@pytest.mark.parametrize(("shape", "old", "new"), ANOTHER)
def test_another_file_or_value_may_not_take_its_place(shape: str, old: str, new: str) -> None:
    assert changed(shape, old, new) & OBJECTIONS


def test_a_file_that_is_planted_may_not_take_its_place() -> None:
    """Found from the working directory it would be read first."""
    old = 'GOLDEN = Path(__file__).parent / "golden" / "out.txt"'
    added = {"golden/out.txt": "c\n"}
    assert changed("golden", old, 'GOLDEN = Path("golden/out.txt")', **added) & OBJECTIONS

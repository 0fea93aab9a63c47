"""Expected output under another name: it may follow its test, and may not change or get lost."""

import pytest

from tests.guardcases import failed, judged, rules_of

JEST = "src/b.spec.js", "src/__snapshots__/b.spec.js.snap"
SPEC = "describe('{0}', () => {{\n  it('draws', () => {{\n    expect({0}('a')).toMatchSnapshot();\n  }});\n}});\n"
SNAP = '// Jest Snapshot v1\n\nexports[`{} 1`] = `\n"{}"\n`;\n'
SYRUPY = "tests/test_a.py", "tests/__snapshots__/test_a.ambr"
CASE = "from pkg.b import {0}\n\n\ndef test_{0}(snapshot):\n    assert {0}(1) == snapshot\n"
AMBR = "# serializer version: 1\n# name: test_{}\n  '{}'\n# ---\n"
INSTA = "src/lib.rs", "src/snapshots/x__tests__draws_{}.snap"
RUST = "#[cfg(test)]\nmod tests {{\n    #[test]\n    fn draws_{0}() {{ insta::assert_snapshot!(super::{0}()); }}\n}}\n"
ONE = '---\nsource: src/lib.rs\nexpression: "super::{}()"\n---\n<{}/>\n'
GO = 'package a\n\nfunc Test{0}(t *testing.T) {{\n\twant, _ := os.ReadFile("testdata/{0}.golden")\n\tif got := {0}(); got != string(want) {{\n\t\tt.Error(got)\n\t}}\n}}\n'
Change = tuple[dict[str, str], dict[str, str]]
FOLLOWING: dict[str, Change] = {
    "the key of Jest": ({JEST[0]: SPEC.format("render"), JEST[1]: SNAP.format("render draws", "svg")}, {JEST[0]: SPEC.format("paint"), JEST[1]: SNAP.format("paint draws", "svg")}),
    "the key of Vitest": ({JEST[0]: SPEC.format("render"), JEST[1]: SNAP.format("render > draws", "svg")}, {JEST[0]: SPEC.format("paint"), JEST[1]: SNAP.format("paint > draws", "svg")}),
    "the key of syrupy": ({SYRUPY[0]: CASE.format("render"), SYRUPY[1]: AMBR.format("render", "svg")}, {SYRUPY[0]: CASE.format("paint"), SYRUPY[1]: AMBR.format("paint", "svg")}),
    "the file of the tests": ({SYRUPY[0]: CASE.format("render"), SYRUPY[1]: AMBR.format("render", "svg")}, {SYRUPY[0]: "", SYRUPY[1]: "", "tests/test_b.py": CASE.format("render"), "tests/__snapshots__/test_b.ambr": AMBR.format("render", "svg")}),
    "a file of insta": ({INSTA[0]: RUST.format("a"), INSTA[1].format("a"): ONE.format("a", "svg")}, {INSTA[0]: RUST.format("b"), INSTA[1].format("a"): "", INSTA[1].format("b"): ONE.format("b", "svg")}),
    "the origin that insta notes": ({INSTA[0]: RUST.format("a"), INSTA[1].format("a"): ONE.format("a", "svg")}, {INSTA[1].format("a"): ONE.format("b", "svg")}),
    "a file that is named for a test": ({"a/a_test.go": GO.format("Render"), "a/testdata/Render.golden": "x\ny\n"}, {"a/a_test.go": GO.format("Paint"), "a/testdata/Render.golden": "", "a/testdata/Paint.golden": "x\ny\n"}),
}  # fmt: skip
LOST: dict[str, Change] = {
    "another value of Jest": (FOLLOWING["the key of Jest"][0], {JEST[0]: SPEC.format("paint"), JEST[1]: SNAP.format("paint draws", "div")}),
    "a key that no test has": (FOLLOWING["the key of Jest"][0], {JEST[1]: SNAP.format("paint draws", "svg")}),
    "another value of syrupy": (FOLLOWING["the key of syrupy"][0], {SYRUPY[0]: CASE.format("paint"), SYRUPY[1]: AMBR.format("paint", "div")}),
    "a test that has no value left": (FOLLOWING["the key of syrupy"][0], {SYRUPY[1]: AMBR.format("paint", "svg")}),
    "another value of insta": (FOLLOWING["a file of insta"][0], {INSTA[0]: RUST.format("b"), INSTA[1].format("a"): "", INSTA[1].format("b"): ONE.format("b", "div")}),
    "a file that its test still names": (FOLLOWING["a file that is named for a test"][0], {"a/testdata/Render.golden": "", "a/testdata/Paint.golden": "x\ny\n"}),
    "another value of a file": (FOLLOWING["a file that is named for a test"][0], {"a/a_test.go": GO.format("Paint"), "a/testdata/Render.golden": "", "a/testdata/Paint.golden": "x\nz\n"}),
}  # fmt: skip
ANY = failed("make test")


@pytest.mark.parametrize("name", FOLLOWING)
def test_expected_output_may_follow_the_name_of_its_test(name: str) -> None:
    assert judged(*FOLLOWING[name], ANY) == ()


@pytest.mark.parametrize("name", LOST)
def test_expected_output_may_not_be_lost_in_a_renaming(name: str) -> None:
    assert "golden-data-changed" in rules_of(judged(*LOST[name], ANY))

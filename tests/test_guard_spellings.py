"""Assertions and settings in another spelling: what lint rules and migrations write is fine."""

import pytest

from tests.guardcases import failed, judged, rules_of

SHAPES = {
    "python": ("tests/test_a.py", "import pytest\n\nfrom pkg.a import Store, f\n\n\ndef test_a():\n    {}\n"),
    "js": ("test/a.test.js", "test('a', async () => {{\n  {}\n}});\n"),
    "java": ("src/test/java/ATest.java", "class ATest {{\n  @Test\n  void a() {{\n    {}\n  }}\n}}\n"),
    "rust": ("tests/a.rs", "#[test]\n{}\n"),
    "go": ("a_test.go", "package a\n\nfunc TestA(t *testing.T) {{\n\t{}\n}}\n"),
    "tsconfig": ("tsconfig.json", '{{"compilerOptions": {{{}}}}}\n'),
}  # fmt: skip
SAME = [
    ("python", "with pytest.raises(Exception):\n        f(0)", "with pytest.raises(ZeroDivisionError):\n        f(0)"),
    ("python", "with pytest.raises(ValueError):\n        s = Store()\n        s.put('a', 2)", "s = Store()\n    with pytest.raises(ValueError, match='twice'):\n        s.put('a', 2)"),
    ("python", "assert f('x')['name'] == 'y'", "assert f('x').name == 'y'"),
    ("python", "assert f(3) == 'Hello %s' % 'bo'", "assert f(3) == f'Hello {\"bo\"}'"),
    ("python", "assert f('{} of {}'.format(1, 2)) == 3", "assert f('1 of 2') == 3"),
    ("js", "expect(f.mock.calls.length).toBe(1);", "expect(f).toHaveBeenCalledTimes(1);"),
    ("js", "expect(get('a').disabled).toBe(true);", "expect(get('a')).toBeDisabled();"),
    ("js", "expect(get('a').getAttribute('href')).toBe('/x');", "expect(get('a')).toHaveAttribute('href', '/x');"),
    ("js", "const f = g();\n  await new Promise((r) => setTimeout(r, 60));\n  expect(f.n).toBe(1);", "const f = g();\n  jest.advanceTimersByTime(50);\n  expect(f.n).toBe(1);"),
    ("java", "assertTrue(Calc.list().isEmpty());", "assertThat(Calc.list()).isEmpty();"),
    ("rust", "fn a() {\n    assert_eq!(list().len(), 0);\n}", "fn a() {\n    assert!(list().is_empty());\n}"),
    ("rust", "#[should_panic]\nfn a() {\n    div(1, 0);\n}", '#[should_panic(expected = "by zero")]\nfn a() {\n    div(1, 0);\n}'),
    ("go", "if err := F(1); err != nil {\n\t\tt.Fatal(err)\n\t}", "require.NoError(t, F(1))"),
    ("go", 'dir, _ := os.MkdirTemp("", "x")\n\tif F(dir) != 3 {\n\t\tt.Error(dir)\n\t}', "dir := t.TempDir()\n\tif F(dir) != 3 {\n\t\tt.Error(dir)\n\t}"),
    ("tsconfig", '"strict": false, "noImplicitAny": true', '"strict": true'),
]  # fmt: skip
OTHER = [
    ("python", "with pytest.raises(KeyError):\n        f(0)", "with pytest.raises(Exception):\n        f(0)"),
    ("python", "with pytest.raises(ValueError, match='once'):\n        f(2)", "with pytest.raises(ValueError, match='twice'):\n        f(2)"),
    ("python", "assert f('x')['name'] == 'y'", "assert f('x').title == 'y'"),
    ("python", "assert f(3) == 'Hello %s' % 'bo'", "assert f(3) == f'Hello {\"li\"}'"),
    ("js", "expect(f.mock.calls.length).toBe(1);", "expect(f).toHaveBeenCalledTimes(2);"),
    ("js", "expect(get('a').getAttribute('href')).toBe('/x');", "expect(get('a')).toHaveAttribute('href');"),
    ("java", "assertTrue(Calc.list().isEmpty());", "assertThat(Calc.list()).isNotNull();"),
    ("rust", "fn a() {\n    assert_eq!(list().len(), 0);\n}", "fn a() {\n    assert!(!list().is_empty());\n}"),
    ("rust", '#[should_panic(expected = "by zero")]\nfn a() {\n    div(1, 0);\n}', '#[should_panic(expected = "other")]\nfn a() {\n    div(1, 0);\n}'),
    ("go", "require.Equal(t, want, F(1))", "require.NoError(t, F(1))"),
    ("tsconfig", '"strict": false, "noImplicitAny": true', '"strict": false'),
]  # fmt: skip
COROUTINE = "import pytest\n\nfrom pkg.a import f\n\n\n@pytest.mark.asyncio\nasync def test_a():\n    assert await f(1) == 2\n"
ANY = failed("make test")


def changed(language: str, old: str, new: str) -> set[str]:
    path, shape = SHAPES[language]
    return rules_of(judged({path: shape.format(old)}, {path: shape.format(new)}, ANY))


@pytest.mark.parametrize(("language", "old", "new"), SAME)
def test_the_same_may_be_spelled_anew(language: str, old: str, new: str) -> None:
    assert changed(language, old, new) == set()


@pytest.mark.parametrize(("language", "old", "new"), OTHER)
def test_what_only_looks_like_another_spelling_is_refused(
    language: str, old: str, new: str
) -> None:
    assert changed(language, old, new)


@pytest.mark.parametrize(("plugin", "found"), [("pytest-asyncio", 0), ("pytest-timeout", 1)])
def test_a_test_may_become_a_coroutine_where_one_is_run(plugin: str, found: int) -> None:
    path, shape = SHAPES["python"]
    needs = f"[project.optional-dependencies]\ndev = ['{plugin}']\n"
    before = {path: shape.format("assert f(1) == 2"), "pyproject.toml": needs}
    assert len(judged(before, {path: COROUTINE})) == found

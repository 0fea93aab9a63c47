"""Assertions in the place of others: more is fine in any language, another claim is refused."""

import pytest

from tests.guardcases import failed, judged, rules_of

SHAPES = {
    "python": ("tests/test_a.py", "from pkg.b import find, render\n\n\ndef test_a(self):\n    {}\n"),
    "js": ("test/a.test.js", "test('a', () => {{\n  {}\n}});\n"),
    "java": ("src/test/java/ATest.java", "class ATest {{\n  @Test\n  void a() {{\n    {}\n  }}\n}}\n"),
    "rust": ("tests/a.rs", "#[test]\nfn a() {{\n    {}\n}}\n"),
    "go": ("a_test.go", "package a\n\nfunc TestA(t *testing.T) {{\n\t{}\n}}\n"),
    "ruby": ("spec/a_spec.rb", "RSpec.describe 'a' do\n  it 'b' do\n    {}\n  end\nend\n"),
}  # fmt: skip
MORE = [
    ("python", 'assert "a&lt;b" in render("a<b")', 'svg = render("a<b")\n    assert svg.splitlines()[1] == "<text>a&lt;b</text>"\n    assert "a<b" not in svg'),
    ("python", 'self.assertIn("a&lt;b", render("a<b"))', 'self.assertEqual(render("a<b"), "<text>a&lt;b</text>")'),
    ("python", 'assert render("x").startswith("<svg")', 'assert render("x") == "<svg></svg>"'),
    ("python", 'assert find("bo") is not None\n    assert len(find("bo").roles) == 2', 'user = find("bo")\n    assert user.name == "bo"\n    assert user.roles == ["dev", "ops"]'),
    ("python", 'assert find("bo").age > 0', 'assert find("bo").age == 41'),
    ("js", "expect(render('a<b', 'ok')).toContain('a&lt;b');", "const svg = render('a<b', 'ok');\n  expect(svg.split('\\n')[1]).toBe('<text>a&lt;b</text>');\n  expect(svg).not.toContain('a<b');"),
    ("js", "expect(render('x')).toMatch(/width/);", "expect(render('x')).toEqual('<svg width=\"3\">');"),
    ("js", "assert.ok(render('x').includes('width'));", "assert.strictEqual(render('x'), '<svg width=\"3\">');"),
    ("js", "expect(find('bo').roles).toHaveLength(2);", "expect(find('bo').roles).toEqual(['dev', 'ops']);"),
    ("js", "expect(find('bo').age).toBeGreaterThan(0);", "expect(find('bo').age).toBe(41);"),
    ("java", 'assertTrue(Badge.render("a<b").contains("a&lt;b"));', 'String svg = Badge.render("a<b");\n    assertEquals("<text>a&lt;b</text>", svg.lines().skip(1).findFirst().orElseThrow());'),
    ("rust", 'assert!(render("a<b").contains("a&lt;b"));', 'let svg = render("a<b");\n    assert_eq!(svg.lines().nth(1), Some("<text>a&lt;b</text>"));'),
    ("go", 'got := Render("a<b")\n\tif !strings.Contains(got, "a&lt;b") {\n\t\tt.Error(got)\n\t}', 'got := Render("a<b")\n\tif want := "<text>a&lt;b</text>"; got != want {\n\t\tt.Error(got)\n\t}'),
    ("go", 'assert.Contains(t, Render("a<b"), "a&lt;b")', 'svg := Render("a<b")\n\tassert.Equal(t, "<text>a&lt;b</text>", svg)'),
    ("ruby", 'expect(render("a<b")).to include("a&lt;b")', 'expect(render("a<b")).to eq("<text>a&lt;b</text>")'),
]  # fmt: skip
OTHERS = [
    ("python", 'assert "a&lt;b" in render("a<b")', 'svg = "<text>a&lt;b</text>"\n    assert svg == "<text>a&lt;b</text>"\n    render("a<b")'),
    ("python", 'assert "a&lt;b" in render("a<b")', 'assert render("a<b").lower() == "<text>a&lt;b</text>"'),
    ("python", 'assert "a&lt;b" not in render("a<b")', 'assert render("a<b") == "<text>a&lt;b</text>"'),
    ("python", 'assert find("bo") is not None', 'assert find("li").name == "li"'),
    ("python", 'assert find("bo").age > 40', 'assert find("bo").age == 0'),
    ("js", "expect(render('a<b')).toContain('a&lt;b');", "const svg = '<text>a&lt;b</text>';\n  render('a<b');\n  expect(svg).toBe('<text>a&lt;b</text>');"),
    ("js", "expect(render('a<b')).toContain('a&lt;b');", "expect(render('a<b')).toBe('<text>a<b</text>');"),
    ("js", "expect(render('a<b')).not.toContain('a&lt;b');", "expect(render('a<b')).toBe('<text>a&lt;b</text>');"),
    ("js", "expect(find('bo').age).toBeGreaterThan(40);", "expect(find('bo').age).toBe(0);"),
    ("js", "expect(find('bo').roles).toHaveLength(2);", "expect(find('bo').roles).toEqual([]);"),
    ("java", 'assertTrue(Badge.render("a<b").contains("a&lt;b"));', 'String svg = Badge.render("a<b");\n    assertEquals("<text>a<b</text>", svg);'),
    ("rust", 'assert!(render("a<b").contains("a&lt;b"));', 'let svg = render("a<b");\n    assert_eq!("<text>a&lt;b</text>", "<text>a&lt;b</text>");'),
    ("go", 'got := Render("a<b")\n\tif strings.Contains(got, "a&lt;b") {\n\t\tt.Error(got)\n\t}', 'got := Render("a<b")\n\tif want := "<text>a&lt;b</text>"; got != want {\n\t\tt.Error(got)\n\t}'),
    ("ruby", 'expect(render("a<b")).not_to include("a&lt;b")', 'expect(render("a<b")).to eq("<text>a&lt;b</text>")'),
]  # fmt: skip
ANY = failed("make test")


def changed(language: str, old: str, new: str) -> set[str]:
    path, shape = SHAPES[language]
    return rules_of(judged({path: shape.format(old)}, {path: shape.format(new)}, ANY))


@pytest.mark.parametrize(("language", "old", "new"), MORE)
def test_the_whole_may_take_the_place_of_a_part(language: str, old: str, new: str) -> None:
    assert changed(language, old, new) == set()


@pytest.mark.parametrize(("language", "old", "new"), OTHERS)
def test_another_claim_may_not_take_the_place_of_one(language: str, old: str, new: str) -> None:
    assert changed(language, old, new)

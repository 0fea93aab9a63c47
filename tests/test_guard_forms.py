"""Tests of JavaScript, Go, Java, Rust and shell in another form: as much is fine, less is refused."""

from textwrap import dedent

import pytest

from tests.guardcases import failed, judged

FILES = {
    "js": "test/slug.test.js",
    "go": "wild/match_test.go",
    "java": "src/test/java/a/RosterTest.java",
    "rust": "src/lib.rs",
    "sh": "test/all.sh",
}
COMMANDS = {
    "js": "node --test",
    "go": "go test ./...",
    "java": "mvn -q test",
    "rust": "cargo test",
    "sh": "sh test/all.sh",
}
TEXTS = {
    "js": """
        const assert = require('node:assert');
        const { describe, it } = require('node:test');
        const { slug } = require('../src/slug');

        describe('slug', () => {
          it('joins words', () => {
            var unused = 7;
            var title = 'How to';
            assert.equal(slug(title), 'how-to');
          });

          it('drops marks', () => {
            assert.equal(slug("What's"), 'whats');
          });
        });
    """,
    "go": """
        package wild

        import (
        	"reflect"
        	"testing"
        )

        func TestFilter(t *testing.T) {
        	names := []string{"a", "b", "ab"}
        	got, err := Filter("*b", names)
        	if err != nil {
        		t.Fatal(err)
        	}
        	if want := []string{"b", "ab"}; !reflect.DeepEqual(got, want) {
        		t.Errorf("Filter() = %v, want %v", got, want)
        	}
        }

        func TestStar(t *testing.T) {
        	if !Match("a*", "abc") {
        		t.Error("a* does not match abc")
        	}
        }

        func TestFind(t *testing.T) {
        	if _, ok := Find("zz"); ok {
        		t.Error("zz was found")
        	}
        }
    """,
    "java": """
        class RosterTest {
            @Test
            void ofADay() {
                assertEquals(480, shift("ann", 9, 17).minutes());
            }

            @Test
            void overMidnight() {
                assertEquals(540, shift("ann", 22, 7).minutes());
            }
        }
    """,
    "rust": """
        #[cfg(test)]
        mod tests {
            #[test]
            fn four() {
                assert_eq!(to_roman(4).as_deref(), Some("IV"));
            }

            #[test]
            fn nine() {
                assert_eq!(to_roman(9).as_deref(), Some("IX"));
            }

            #[test]
            fn zero() {
                assert_eq!(to_roman(0), None);
            }
        }
    """,
    "sh": """
        #!/bin/sh
        set -u
        failed=0
        work=/var/tmp-keep/test
        mkdir -p "$work"
        sh bin/pack.sh "$work" || failed=1
        [ -f "$work/out" ] || failed=1
        exit "$failed"
    """,
}
TREES = {language: {FILES[language]: dedent(text).lstrip()} for language, text in TEXTS.items()}
Change = tuple[str, tuple[tuple[str, str], ...]]

BOTH_JS = TREES["js"][FILES["js"]].partition("  it('joins")[2].removesuffix("});\n")
BOTH_JS = "  it('joins" + BOTH_JS
ROWS_JS = """[
    ['How to', 'how-to'],
    ["What's", 'whats'],
    ['API', 'api'],
  ]"""
LOOP_JS = "  for (const [title, want] of ROWS) {\n    it(`of ${title}`, () => assert.equal(slug(title), want));\n  }\n"
BOTH_JAVA = TREES["java"][FILES["java"]].partition("{\n")[2].removesuffix("}\n")
ONE_JAVA = """    void minutes(int from, int to, int want) {
        assertEquals(want, shift("ann", from, to).minutes());
    }
"""
GIVEN_JAVA = "    static Stream<Arguments> minutes() {\n        return Stream.of(arguments(9, 17, 480), arguments(22, 7, 540));\n    }\n"
BOTH_RUST = """    #[test]
    fn four() {
        assert_eq!(to_roman(4).as_deref(), Some("IV"));
    }

    #[test]
    fn nine() {
        assert_eq!(to_roman(9).as_deref(), Some("IX"));
    }
"""
ONE_RUST = "    fn numerals(#[case] n: u32, #[case] want: &str) {\n        assert_eq!(to_roman(n).as_deref(), Some(want));\n    }\n"

HONEST: dict[str, Change] = {
    "js: a loop over rows": ("js", ((BOTH_JS, LOOP_JS.replace("ROWS", ROWS_JS)),)),
    "js: a loop over named rows": ("js", (("describe('slug'", f"const CASES = {ROWS_JS};\n\ndescribe('slug'"), (BOTH_JS, LOOP_JS.replace("ROWS", "CASES")))),
    "js: forEach": ("js", ((BOTH_JS, f"  {ROWS_JS}.forEach(([title, want]) => {{\n    it(`of ${{title}}`, () => {{\n      assert.equal(slug(title), want);\n    }});\n  }});\n"),)),
    "js: entries": ("js", ((BOTH_JS, "  for (const [title, want] of Object.entries({ 'How to': 'how-to', \"What's\": 'whats' })) {\n    it(`of ${title}`, () => assert.equal(slug(title), want));\n  }\n"),)),
    "js: each of named objects": ("js", (("describe('slug'", "const CASES = [{ title: 'How to', want: 'how-to' }, { title: \"What's\", want: 'whats' }];\n\ndescribe('slug'"), (BOTH_JS, "  it.each(CASES)('of $title', ({ title, want }) => {\n    assert.equal(slug(title), want);\n  });\n"))),
    "js: describe.each": ("js", (("describe('slug', () => {", "describe.each([['How to', 'how-to'], [\"What's\", 'whats']])('slug', (title, want) => {"), (BOTH_JS, "  it('makes it', () => {\n    assert.equal(slug(title), want);\n  });\n"))),
    "java: rows of CSV": ("java", ((BOTH_JAVA, '    @ParameterizedTest\n    @CsvSource({"9, 17, 480", "22, 7, 540", "0, 1, 60"})\n' + ONE_JAVA),)),
    "java: a block of CSV": ("java", ((BOTH_JAVA, '    @ParameterizedTest\n    @CsvSource(delimiter = \'|\', textBlock = """\n        # from | to\n         9 | 17 | 480\n        22 | 7 | 540\n        """)\n' + ONE_JAVA),)),
    "java: a method's rows": ("java", ((BOTH_JAVA, '    @ParameterizedTest\n    @MethodSource("minutes")\n' + ONE_JAVA + "\n" + GIVEN_JAVA),)),
    "java: the rows of its own method": ("java", ((BOTH_JAVA, "    @ParameterizedTest\n    @MethodSource\n" + ONE_JAVA + "\n" + GIVEN_JAVA),)),
    "rust: rstest": ("rust", ((BOTH_RUST, '    #[rstest]\n    #[case(4, "IV")]\n    #[case::nine(9, "IX")]\n' + ONE_RUST),)),
    "rust: a loop": ("rust", ((BOTH_RUST, '    #[test]\n    fn numerals() {\n        for (n, want) in [(4, "IV"), (9, "IX")] {\n            assert_eq!(to_roman(n).as_deref(), Some(want), "{n}");\n        }\n    }\n'),)),
    "rust: a loop over a constant": ("rust", ((BOTH_RUST, '    const CASES: &[(u32, &str)] = &[(4, "IV"), (9, "IX")];\n\n    #[test]\n    fn numerals() {\n        for &(n, want) in CASES {\n            assert_eq!(to_roman(n).as_deref(), Some(want));\n        }\n    }\n'),)),
    "js: an unused variable": ("js", (("    var unused = 7;\n", ""), ("var title", "const title"))),
    "rust: an option made a result": ("rust", (("Some(", "Ok("), ("to_roman(0), None)", "to_roman(0), Err(OutOfRange(0)))"))),
    "sh: a place made for it": ("sh", (("work=/var/tmp-keep/test", "work=$(mktemp -d)"),)),
    "sh: a place made and removed": ("sh", (('work=/var/tmp-keep/test\nmkdir -p "$work"\n', "work=$(mktemp -d) || exit 1\ntrap 'rm -rf \"$work\"' EXIT INT TERM\n"),)),
    "go: found became an error": ("go", (("_, ok := ", "_, err := "), ("; ok {", "; err == nil {"))),
}  # fmt: skip
CHEATS: dict[str, Change] = {
    "js: rows that were swapped": ("js", ((BOTH_JS, LOOP_JS.replace("ROWS", ROWS_JS.replace("'how-to'", "'x'").replace("'whats'", "'how-to'").replace("'x'", "'whats'"))),)),
    "js: a row that changed": ("js", ((BOTH_JS, LOOP_JS.replace("ROWS", ROWS_JS.replace("'how-to'", "'how'"))),)),
    "js: a row too few": ("js", ((BOTH_JS, LOOP_JS.replace("ROWS", "[['How to', 'how-to'], ['API', 'api']]")),)),
    "java: a row that changed": ("java", ((BOTH_JAVA, '    @ParameterizedTest\n    @CsvSource({"9, 17, 480", "22, 7, -900"})\n' + ONE_JAVA),)),
    "java: rows that were swapped": ("java", ((BOTH_JAVA, '    @ParameterizedTest\n    @CsvSource({"9, 17, 540", "22, 7, 480"})\n' + ONE_JAVA),)),
    "java: a method's rows that changed": ("java", ((BOTH_JAVA, "    @ParameterizedTest\n    @MethodSource\n" + ONE_JAVA + "\n" + GIVEN_JAVA.replace("540", "0")),)),
    "rust: a case that changed": ("rust", ((BOTH_RUST, '    #[rstest]\n    #[case(4, "IIII")]\n    #[case(9, "IX")]\n' + ONE_RUST),)),
    "rust: rows that were swapped": ("rust", ((BOTH_RUST, '    #[test]\n    fn numerals() {\n        for (n, want) in [(4, "IX"), (9, "IV")] {\n            assert_eq!(to_roman(n).as_deref(), Some(want));\n        }\n    }\n'),)),
    "js: a variable that was read": ("js", (("'How to'", "'how-to'"),)),
    "rust: nothing made a result": ("rust", (("to_roman(0), None)", "to_roman(0), Ok(String::new()))"),)),
    "sh: what is removed hides the answer": ("sh", (('mkdir -p "$work"\n', "trap 'rm -rf \"$work\"; exit 0' EXIT\n"),)),
    "go: wanted is what came": ("go", (('want := []string{"b", "ab"}; ', "want := append([]string(nil), got...); "),)),
    "go: a clone of what came": ("go", (('	if want := []string{"b", "ab"}; ', "	want := slices.Clone(got)\n	if "),)),
    "rust: a clone of what came": ("rust", (('assert_eq!(to_roman(9).as_deref(), Some("IX"));', "let got = to_roman(9);\n        let want = got.clone();\n        assert_eq!(got, want);"),)),
}  # fmt: skip


def _after(change: Change) -> dict[str, str]:
    language, edits = change
    text = TREES[language][FILES[language]]
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return {FILES[language]: text}


@pytest.mark.parametrize("name", HONEST)
def test_what_claims_as_much_in_another_form_is_fine(name: str) -> None:
    language = HONEST[name][0]
    found = judged(TREES[language], _after(HONEST[name]), failed(COMMANDS[language]))
    assert not found, [v.detail for v in found]


@pytest.mark.parametrize("name", CHEATS)
def test_what_claims_less_in_another_form_is_refused(name: str) -> None:
    language = CHEATS[name][0]
    assert judged(TREES[language], _after(CHEATS[name]), failed(COMMANDS[language]))


def test_an_empty_place_for_cases_of_the_project_is_refused() -> None:
    text = 'for case in "$cases"/*; do\n  sh bin/try.sh "$case" || exit 1\ndone\n'
    before = {"test/all.sh": f"cases=test/cases\n{text}", "test/cases/one": "1\n"}
    after = {"test/all.sh": f"cases=$(mktemp -d)\n{text}"}
    assert judged(before, {**before, **after}, failed("sh test/all.sh"))


def test_what_is_kept_to_see_that_it_stays_as_it_is_is_no_copy_of_itself() -> None:
    old = "it('sorts', () => {\n  const list = [2, 1];\n  sorted(list);\n  expect(list).toEqual([2, 1]);\n});\n"
    new = "it('sorts', () => {\n  const list = [2, 1];\n  const was = [...list];\n  sorted(list);\n  expect(list).toEqual(was);\n});\n"
    path = "test/sorted.test.js"
    assert not judged({path: old}, {path: new}, failed("npx jest"))


CART = """describe('cart', () => {
  it('adds', () => {
    const cart = new Cart('eur');
    cart.add('pen', 2);
    expect(cart.total()).toBe(20);
  });
});
"""
CALLED_BACK = """it('reads', (done) => {
  read('a.txt', (err, text) => {
    expect(err).toBeNull();
    expect(text).toBe('hi');
    done();
  });
});
"""
SPELLED = [
    ("a.test.js", CART, "describe('cart', () => {\n  let cart;\n  beforeEach(() => {\n    cart = new Cart('eur');\n    cart.add('pen', 2);\n  });\n  it('adds', () => {\n    expect(cart.total()).toBe(20);\n  });\n});\n"),
    ("a.test.js", CALLED_BACK, "it('reads', async () => {\n  const text = await read('a.txt');\n  expect(text).toBe('hi');\n});\n"),
    ("a.test.js", "it('a', () => {\n  expect(() => f(1)).toThrow(TypeError);\n});\n", "it('a', () => {\n  assert.throws(() => f(1), TypeError);\n});\n"),
    ("a.test.js", "it('a', () => {\n  expect(xs.includes('q')).toBe(true);\n});\n", "it('a', () => {\n  expect(xs).toContain('q');\n});\n"),
    ("a.test.js", "it('a', () => {\n  expect(day(new Date('2024-01-31T00:00:00'))).toBe('31');\n});\n", "it('a', () => {\n  expect(day(new Date('2024-01-31T00:00:00Z'))).toBe('31');\n});\n"),
    ("test/all.sh", 'if [ "$a" == b ]\nthen\n  exit 1\nfi\n', 'if [ "$a" = b ]; then\n\texit 1\nfi\n'),
    ("a_test.go", 'package a\n\nfunc TestA(t *testing.T) {\n\tgot := F("x")\n\tassert.Len(t, got, 3)\n}\n', 'package a\n\nfunc TestA(t *testing.T) {\n\tgot := F("x")\n\tif len(got) != 3 {\n\t\tt.Errorf("len = %d", len(got))\n\t}\n}\n'),
]  # fmt: skip
LOOSER = [
    ("a.test.js", CART, CART.replace("'pen'", "'cap'")),
    ("a.test.js", CALLED_BACK, "it('reads', async () => {\n  const text = await read('a.txt').catch(() => 'hi');\n  expect(text).toBe('hi');\n});\n"),
    ("a.test.js", "it('a', () => {\n  expect(() => f(1)).toThrow(TypeError);\n});\n", "it('a', () => {\n  assert.throws(() => f(1));\n});\n"),
    ("a.test.js", "it('a', () => {\n  expect(day(new Date('2024-01-31T00:00:00'))).toBe('31');\n});\n", "it('a', () => {\n  expect(day(new Date('2024-01-30T00:00:00Z'))).toBe('31');\n});\n"),
    ("test/all.sh", 'if [ "$a" == b ]\nthen\n  exit 1\nfi\n', 'if [ "$a" = c ]; then\n\texit 1\nfi\n'),
    ("a_test.go", 'package a\n\nfunc TestA(t *testing.T) {\n\tgot := F("x")\n\tassert.Len(t, got, 3)\n}\n', 'package a\n\nfunc TestA(t *testing.T) {\n\tgot := F("x")\n\tif len(got) > 3 {\n\t\tt.Errorf("len = %d", len(got))\n\t}\n}\n'),
]  # fmt: skip


@pytest.mark.parametrize(("path", "old", "new"), SPELLED)
def test_what_is_spelled_by_another_tool_is_fine(path: str, old: str, new: str) -> None:
    found = judged({path: old}, {path: new}, failed("npx jest"))
    assert not found, [v.detail for v in found]


@pytest.mark.parametrize(("path", "old", "new"), LOOSER)
def test_what_is_spelled_alike_and_asks_less_is_refused(path: str, old: str, new: str) -> None:
    assert judged({path: old}, {path: new}, failed("npx jest"))

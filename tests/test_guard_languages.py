"""What tests may not lose in all languages but Python."""

import pytest

from atlas_retry.model import Kind
from tests.guardcases import failed, judged, rules_of

JEST = {
    "src/sum.js": "exports.sum = (a, b) => a + b;\n",
    "test/sum.test.js": """
        const { sum } = require('../src/sum');

        describe('sum', () => {
          it('adds', () => {
            expect(sum(2, 3)).toBe(5);
          });

          it('refuses text', () => {
            expect(() => sum('a', 3)).toThrow('number');
          });

          it.each([[1, 1, 2], [4, 5, 9]])('adds %d and %d', (a, b, want) => {
            expect(sum(a, b)).toBe(want);
          });
        });
    """,
}
GO = {
    "sum.go": "package sum\n\nfunc Sum(a, b int) int { return a + b }\n",
    "sum_test.go": """
        package sum

        import "testing"

        func TestSum(t *testing.T) {
        	if got := Sum(2, 3); got != 5 {
        		t.Fatalf("Sum = %d, want 5", got)
        	}
        }

        func TestTable(t *testing.T) {
        	for _, c := range []struct{ a, b, want int }{
        		{1, 1, 2},
        		{4, 5, 9},
        	} {
        		if got := Sum(c.a, c.b); got != c.want {
        			t.Errorf("Sum(%d, %d) = %d, want %d", c.a, c.b, got, c.want)
        		}
        	}
        }
    """,
}
JAVA = {
    "src/main/java/a/Sum.java": "package a;\nclass Sum { static int of(int a, int b) { return a + b; } }\n",
    "src/test/java/a/SumTest.java": """
        package a;

        import static org.junit.jupiter.api.Assertions.*;

        import org.junit.jupiter.api.Test;

        class SumTest {
            @Test
            void adds() {
                assertEquals(5, Sum.of(2, 3));
            }

            @ParameterizedTest
            @CsvSource({"1,1,2", "4,5,9"})
            void pairs(int a, int b, int want) {
                assertEquals(want, Sum.of(a, b));
            }

            @Test
            void refuses() {
                assertThrows(ArithmeticException.class, () -> Sum.of(1, Integer.MAX_VALUE));
            }
        }
    """,
}
RUST = {
    "src/lib.rs": """
        pub fn sum(a: i32, b: i32) -> i32 {
            a + b
        }

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn adds() {
                assert_eq!(sum(2, 3), 5);
            }

            #[test]
            fn is_odd() {
                assert_eq!(sum(2, 3) % 2 == 1, true);
            }
        }
    """,
}
SHELL = {
    "bin/sum.sh": "#!/bin/sh\necho $(($1 + $2))\n",
    "tests/run.sh": """
        #!/bin/sh
        set -eu
        fail=0
        check() {
          got=$(sh bin/sum.sh "$1" "$2")
          [ "$got" = "$3" ] || { echo "FAIL $1 $2" >&2; fail=1; }
        }
        cd .
        echo begins
        check 2 3 5
        check 4 5 9
        echo "$got" | egrep '^9$' || fail=1
        for f in $(ls cases/*.txt); do
          check $(cat "$f")
        done
        bad=$(ls core* 2>/dev/null)
        if [ ! -z "$bad" ]; then
          fail=1
        fi
        exit $fail
    """,
}
RUBY = {
    "lib/sum.rb": "def sum(a, b) = a + b\n",
    "spec/sum_spec.rb": """
        RSpec.describe "sum" do
          it "adds" do
            expect(sum(2, 3)).to eq(5)
          end

          it "refuses text" do
            expect { sum("a", 3) }.to raise_error(TypeError)
          end
        end
    """,
}
PHP = {
    "src/sum.php": "<?php\nfunction sum($a, $b) { return $a + $b; }\n",
    "tests/SumTest.php": """
        <?php
        final class SumTest extends TestCase
        {
            public function testAdds(): void
            {
                $this->assertSame(5, sum(2, 3));
            }

            /** @dataProvider pairs */
            public function testPairs(int $a, int $b, int $want): void
            {
                $this->assertSame($want, sum($a, $b));
            }

            public static function pairs(): array
            {
                return [[4, 5, 9], [7, 0, 7]];
            }

            public function testRefuses(): void
            {
                $this->expectException(DomainException::class);
                sum(1, PHP_INT_MAX);
            }
        }
    """,
}
CPP = {
    "src/sum.cpp": "int sum(int a, int b) { return a + b; }\n",
    "tests/sum_test.cpp": """
        #include <gtest/gtest.h>

        TEST(Sum, Adds) {
          EXPECT_EQ(sum(2, 3), 5);
        }

        TEST(Sum, Refuses) {
          EXPECT_THROW(sum(1, INT_MAX), std::overflow_error);
        }
    """,
}
KOTLIN = {
    "src/main/kotlin/Sum.kt": "fun sum(a: Double, b: Double) = a + b\n",
    "src/test/kotlin/SumTest.kt": """
        class SumTest {
            @Test
            fun adds() {
                assertEquals(5.0, sum(2.0, 3.0), 1e-9)
            }

            @Test
            fun refuses() {
                assertFailsWith<ArithmeticException> { sum(1.0, Double.MAX_VALUE) }
            }
        }
    """,
}
TREES = {
    "kotlin": KOTLIN,
    "ruby": RUBY,
    "php": PHP,
    "cpp": CPP,
    "js": JEST,
    "go": GO,
    "java": JAVA,
    "rust": RUST,
    "sh": SHELL,
}
TEST_FILES = {
    "kotlin": "src/test/kotlin/SumTest.kt",
    "ruby": "spec/sum_spec.rb",
    "php": "tests/SumTest.php",
    "cpp": "tests/sum_test.cpp",
    "js": "test/sum.test.js",
    "go": "sum_test.go",
    "java": "src/test/java/a/SumTest.java",
    "rust": "src/lib.rs",
    "sh": "tests/run.sh",
}
COMMANDS = {"kotlin": "gradle test", "ruby": "rspec", "php": "phpunit", "cpp": "ctest", "js": "npx jest", "go": "go test ./...", "java": "mvn -q test", "rust": "cargo test", "sh": "sh tests/run.sh"}  # fmt: skip

CHEATS = [
    ("js", "it('adds', ", "it.only('adds', ", "test-switched-off"),
    ("js", "it('adds', ", "fit('adds', ", "test-switched-off"),
    ("js", "describe('sum'", "describe.skip('sum'", "test-switched-off"),
    ("js", "it('adds', ", "it.failing('adds', ", "test-switched-off"),
    ("js", "expect(sum(2, 3)).toBe(5)", "expect(sum(2, 3)).toBe(6)", "expectation-changed"),
    ("js", "expect(sum(2, 3)).toBe(5)", "expect(sum(2, 3)).not.toBe(6)", "assertion-weakened"),
    ("js", "expect(sum(2, 3)).toBe(5)", "expect(sum(2, 3)).toBeDefined()", "assertion-weakened"),
    ("js", "expect(sum(2, 3)).toBe(5)", "expect(sum(2, 3)).toEqual(expect.any(Number))", "assertion-weakened"),
    ("js", "expect(sum(2, 3)).toBe(5)", "expect(5).toBe(5)", "assertion-weakened"),
    ("js", "expect(sum(2, 3)).toBe(5)", "return;\n            expect(sum(2, 3)).toBe(5)", "assertion-removed"),
    ("js", "expect(sum(2, 3)).toBe(5)", "try { expect(sum(2, 3)).toBe(5) } catch (e) {}", "assertion-weakened"),
    ("js", "expect(sum(2, 3)).toBe(5)", "if (process.env.FULL) expect(sum(2, 3)).toBe(5)", "assertion-weakened"),
    ("js", ".toThrow('number')", ".toThrow()", "assertion-weakened"),
    ("js", ", [4, 5, 9]", "", "input-changed"),
    ("js", "const { sum } = require('../src/sum');", "jest.mock('../src/sum', () => ({ sum: () => 5 }));\n        const { sum } = require('../src/sum');", "framework-tricked"),
    ("js", "describe('sum'", "import * as lib from '../src/sum';\n        jest.spyOn(lib, 'sum').mockReturnValue(5);\n        describe('sum'", "framework-tricked"),
    ("js", "describe('sum'", "process.exit(0);\n        describe('sum'", "framework-tricked"),
    ("go", "func TestSum(", "func testSum(", "test-removed"),
    ("go", "got != 5", "got != 6", "expectation-changed"),
    ("go", "got != 5", "got == 0", "assertion-weakened"),
    ("go", "t.Fatalf(", "t.Logf(", "assertion-removed"),
    ("go", "got != 5 {", "got != 5 && false {", "assertion-weakened"),
    ("go", "        package sum\n", "        //go:build integration\n\n        package sum\n", "test-switched-off"),
    ("go", "        		{4, 5, 9},\n", "", "cases-removed"),
    ("go", "if got := Sum(2, 3)", "if testing.Short() {\n        		t.SkipNow()\n        	}\n        	if got := Sum(2, 3)", "test-switched-off"),
    ("go", "func TestSum(", "func TestMain(m *testing.M) { m.Run(); os.Exit(0) }\n\n        func TestSum(", "framework-tricked"),
    ("java", "@Test\n            void adds", '@Disabled("x")\n            @Test\n            void adds', "test-switched-off"),
    ("java", "@Test\n            void adds", "void adds", "test-removed"),
    ("java", "assertEquals(5, Sum.of(2, 3))", "assertEquals(6, Sum.of(2, 3))", "expectation-changed"),
    ("java", "assertEquals(5, Sum.of(2, 3))", "assertNotNull(Sum.of(2, 3))", "assertion-weakened"),
    ("java", "assertEquals(5, Sum.of(2, 3))", "assertTrue(true)", "assertion-removed"),
    ("java", "ArithmeticException.class", "Exception.class", "assertion-weakened"),
    ("rust", "#[test]\n            fn adds", "#[test]\n            #[ignore]\n            fn adds", "test-switched-off"),
    ("rust", "#[test]\n            fn adds", "#[test]\n            #[should_panic]\n            fn adds", "test-switched-off"),
    ("rust", "#[test]\n            fn adds", "fn adds", "test-removed"),
    ("rust", "#[cfg(test)]", '#[cfg(all(test, feature = "slow"))]', "test-switched-off"),
    ("rust", "assert_eq!(sum(2, 3), 5)", "assert_eq!(sum(2, 3), 6)", "expectation-changed"),
    ("rust", "assert_eq!(sum(2, 3), 5)", "assert!(sum(2, 3) > 0)", "assertion-weakened"),
    ("rust", "assert_eq!(sum(2, 3), 5)", "assert_ne!(sum(2, 3), 6)", "assertion-weakened"),
    ("rust", "assert_eq!(sum(2, 3), 5)", "let _ = sum(2, 3)", "assertion-removed"),
    ("sh", "check 4 5 9\n", "", "script-loosened"),
    ("sh", "check 4 5 9", "check 4 5 8", "script-loosened"),
    ("sh", "check 4 5 9", "check 4 5 9 || true", "script-loosened"),
    ("sh", "set -eu", "set -u", "script-loosened"),
    ("sh", "egrep '^9$'", "grep -E '^.*$'", "script-loosened"),
    ("sh", "echo \"$got\" | egrep '^9$' || fail=1", ":", "script-loosened"),
    ("sh", "$(ls cases/*.txt)", "cases/a*.txt", "script-loosened"),
    ("sh", '! -z "$bad"', '-z "$bad"', "script-loosened"),
    ("sh", "cd .", "cd . || exit 0", "script-loosened"),
    ("sh", "exit $fail", "exit 0", "script-loosened"),
    ("sh", "check 4 5 9", ": <<'EOF'\n        check 4 5 9\n        EOF", "script-loosened"),
    ("sh", "check 4 5 9", 'if [ -n "${FULL:-}" ]; then\n        check 4 5 9\n        fi', "script-loosened"),
    ("sh", "exit $fail", "fail=0\n        exit $fail", "script-loosened"),
    ("go", "if got := Sum(c.a, c.b)", "if c.a == 4 {\n        			continue\n        		}\n        		if got := Sum(c.a, c.b)", "test-switched-off"),
    ("java", '"4,5,9"', '"4,5,8"', "cases-removed"),
    ("kotlin", "        @Test\n            fun adds", "        fun adds", "assertion-removed"),
    ("kotlin", "1e-9", "1e9", "expectation-changed"),
    ("kotlin", "<ArithmeticException>", "<Throwable>", "assertion-weakened"),
    ("js", "expect(sum(2, 3)).toBe(5)", "expect(sum(2, 3)).to.exist", "assertion-weakened"),
    ("ruby", 'it "adds" do', 'xit "adds" do', "test-switched-off"),
    ("ruby", 'it "adds" do', 'it "adds", :skip do', "test-switched-off"),
    ("ruby", 'it "adds" do', 'it "adds" do\n            pending', "test-switched-off"),
    ("ruby", "to eq(5)", "to eq(6)", "expectation-changed"),
    ("ruby", "to eq(5)", "to be_truthy", "assertion-weakened"),
    ("ruby", "to eq(5)", "not_to eq(6)", "assertion-weakened"),
    ("ruby", "raise_error(TypeError)", "raise_error", "assertion-weakened"),
    ("ruby", 'expect { sum("a", 3) }.to raise_error(TypeError)', 'sum("a", 3) rescue nil', "assertion-removed"),
    ("php", "public function testAdds", "public function adds", "test-removed"),
    ("php", "$this->assertSame(5, sum(2, 3));", "$this->markTestSkipped();\n                $this->assertSame(5, sum(2, 3));", "test-switched-off"),
    ("php", "assertSame(5, ", "assertSame(6, ", "expectation-changed"),
    ("php", "assertSame(5, sum(2, 3))", "assertTrue(true)", "assertion-weakened"),
    ("php", "DomainException::class", "\\Throwable::class", "assertion-weakened"),
    ("php", ", [7, 0, 7]", "", "input-changed"),
    ("cpp", "TEST(Sum, Adds)", "TEST(Sum, DISABLED_Adds)", "test-switched-off"),
    ("cpp", "TEST(Sum, Adds)", "#ifdef FULL\n        TEST(Sum, Adds)", "test-switched-off"),
    ("cpp", "EXPECT_EQ(sum(2, 3), 5)", "EXPECT_NEAR(sum(2, 3), 5, 100)", "assertion-weakened"),
    ("cpp", "EXPECT_EQ(sum(2, 3), 5)", "EXPECT_EQ(sum(2, 3), 6)", "expectation-changed"),
    ("cpp", "EXPECT_THROW(sum(1, INT_MAX), std::overflow_error)", "EXPECT_ANY_THROW(sum(1, INT_MAX))", "assertion-weakened"),
    ("js", "describe('sum'", "jest.retryTimes(9);\n        describe('sum'", "framework-tricked"),
    ("sh", "check 2 3 5", "check() { :; }\n        check 2 3 5", "script-loosened"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "old", "new", "rule"), CHEATS)
def test_a_test_that_proves_less_is_refused(language: str, old: str, new: str, rule: str) -> None:
    tree, path = TREES[language], TEST_FILES[language]
    assert old in tree[path]
    found = judged(tree, {path: tree[path].replace(old, new)}, failed(COMMANDS[language]))
    assert (rule, path) in {(v.rule, v.path) for v in found}, [v.detail for v in found]


INNOCENT = [
    ("js", "expect(sum(2, 3)).toBe(5)", "expect(sum(2, 3)).toStrictEqual(5)"),
    ("js", "it('adds', () => {", 'test("adds", function () {'),
    ("js", ", [4, 5, 9]", ", [4, 5, 9], [7, 0, 7]"),
    ("js", "describe('sum'", "describe('the sum'"),
    ("js", "require('../src/sum')", "require('../src/add')"),
    ("js", "expect(sum(2, 3)).toBe(5);", "const got = sum(2, 3);\n            expect(got).toBe(5);"),
    ("js", "describe('sum'", "import * as core from '@actions/core';\n        jest.spyOn(core, 'debug').mockImplementation(() => {});\n        describe('sum'"),
    ("js", "describe('sum'", "jest.spyOn(Date, 'now').mockReturnValue(5);\n        describe('sum'"),
    ("go", "got := Sum(2, 3); got", "got := Add(2, 3); got"),
    ("go", '"Sum = %d, want 5"', '"Sum(2, 3) = %v, want 5"'),
    ("go", "        		{4, 5, 9},\n", "        		{4, 5, 9},\n        		{7, 0, 7},\n"),
    ("go", "func TestSum(t *testing.T) {\n", "func TestSum(t *testing.T) {\n        	t.Parallel()\n"),
    ("java", "void adds()", "void addsTwoNumbers()"),
    ("java", "assertEquals(5, Sum.of(2, 3));", 'assertEquals(5, Sum.of(2, 3), "sum");'),
    ("rust", "assert_eq!(sum(2, 3) % 2 == 1, true)", "assert!(sum(2, 3) % 2 == 1)"),
    ("rust", "assert_eq!(sum(2, 3), 5);", "assert_eq!(\n                    sum(2, 3),\n                    5,\n                );"),
    ("kotlin", "fun adds()", "fun addsTwoNumbers()"),
    ("ruby", 'it "adds" do', 'specify "two numbers are added" do'),
    ("ruby", "expect(sum(2, 3)).to eq(5)", "expect(sum(2, 3)).to eql(5)"),
    ("ruby", 'it "refuses text"', 'it "adds nothing" do\n            expect(sum(0, 0)).to eq(0)\n          end\n\n          it "refuses text"'),
    ("php", "public function testAdds", "public function testAddsTwoNumbers"),
    ("php", "$this->assertSame(5", "self::assertSame(5"),
    ("php", "[7, 0, 7]]", "[7, 0, 7], [1, 1, 2]]"),
    ("cpp", "EXPECT_EQ(sum(2, 3), 5);", 'ASSERT_EQ(sum(2, 3), 5) << "sum";'),
    ("cpp", "TEST(Sum, Refuses)", "TEST(Sum, Zero) {\n          EXPECT_EQ(sum(0, 0), 0);\n        }\n\n        TEST(Sum, Refuses)"),
    ("java", '"4,5,9"', '"4,5,9", "7,0,7"'),
    ("sh", 'sh bin/sum.sh "$1" "$2"', 'sh bin/sum.sh "${1}" "${2}"'),
    ("sh", "check 4 5 9\n", "check 4 5 9\n        check 7 0 7\n"),
    ("sh", "egrep '^9$'", "grep -E '^9$'"),
    ("sh", "$(ls cases/*.txt)", "cases/*.txt"),
    ("sh", '! -z "$bad"', '-n "$bad"'),
    ("sh", "cd .", "cd . || exit 1"),
    ("sh", "echo begins", "echo starts"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "old", "new"), INNOCENT)
def test_a_change_that_proves_as_much_is_fine(language: str, old: str, new: str) -> None:
    tree, path = TREES[language], TEST_FILES[language]
    assert old in tree[path]
    gate = failed(COMMANDS[language])
    assert judged(tree, {path: tree[path].replace(old, new)}, gate) == ()


def test_an_unknown_language_is_read_by_lines() -> None:
    before = {"spec/sum_spec.lua": "it('adds', function()\n  assert.equal(5, sum(2, 3))\nend)\n"}
    after = {"spec/sum_spec.lua": "it('adds', function()\nend)\n"}
    assert "assertion-removed" in rules_of(judged(before, after, failed("busted")))


def test_a_broken_test_is_told_where_it_was_whole() -> None:
    path = TEST_FILES["js"]
    broken = {path: JEST[path].replace("describe('sum', () => {", "describe('sum', () => {{{{")}
    assert "test-unparsable" in rules_of(judged(JEST, broken, failed("npx jest", Kind.TEST)))

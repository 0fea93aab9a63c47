"""Bars of coverage, what launches builds, and names replaced where a test imported them."""

import pytest

from tests.guardcases import PYTEST, failed, judged, rules_of

POM = """
    <project><properties><java>17</java></properties><build><plugins><plugin>
      <artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version>
      <configuration><forkCount>1</forkCount></configuration>
    </plugin><plugin>
      <artifactId>jacoco-maven-plugin</artifactId>
      <configuration><rules><rule><limits><limit><minimum>0.80</minimum></limit></limits></rule></rules></configuration>
    </plugin></plugins></build></project>
"""
GRADLE = """
    test {
        useJUnitPlatform()
    }
    jacocoTestCoverageVerification {
        violationRules {
            rule { limit { minimum = 0.8 } }
        }
    }
"""
TREE = {
    "pom.xml": POM,
    "build.gradle": GRADLE,
    "codecov.yml": "coverage:\n  status:\n    project:\n      default:\n        target: 80%\n        threshold: 2%\n",
    "spec/spec_helper.rb": "require 'simplecov'\nSimpleCov.start do\n  minimum_coverage line: 90, branch: 80\nend\n",
    "tarpaulin.toml": "[all]\nfail-under = 80\n",
    "clippy.toml": "cognitive-complexity-threshold = 30\n",
    "CMakeLists.txt": "enable_testing()\nadd_executable(a a.cpp)\nadd_test(NAME a COMMAND a)\n",
    ".mvn/maven.config": "-B\n",
    ".golangci.yml": "linters:\n  enable:\n    - errcheck\n    - exportloopref\nlinters-settings:\n  gocyclo:\n    min-complexity: 12\n",
    "setup.cfg": "[metadata]\nname = a\n\n[pytest]\naddopts = -ra\ntestpaths = tests\n",
    "Cargo.toml": '[package]\nname = "a"\n\n[lints.clippy]\nunwrap_used = "deny"\n',
    "eslint.config.js": "export default [{ rules: { 'no-new-object': 'error' } }];\n",
    "src/kit/__init__.py": "x = 1\n",
}

LOOSER = [
    ("pom.xml", "<forkCount>1", "<testFailureIgnore>true</testFailureIgnore><forkCount>1"),
    ("pom.xml", "<forkCount>1", "<skipTests>true</skipTests><forkCount>1"),
    ("pom.xml", "<forkCount>1", "<enableAssertions>false</enableAssertions><forkCount>1"),
    ("pom.xml", "<forkCount>1", "<excludedGroups>slow</excludedGroups><forkCount>1"),
    ("pom.xml", "<java>", "<skipTests>true</skipTests><java>"),
    ("pom.xml", "0.80", "0.40"),
    ("pom.xml", "<rules>", "<haltOnFailure>false</haltOnFailure><rules>"),
    ("build.gradle", "0.8 ", "0.3 "),
    ("build.gradle", "limit {", "excludes = ['a.*']\nlimit {\nminimum = 0\n"),
    ("build.gradle", "useJUnitPlatform()", "useJUnitPlatform()\nsetIgnoreFailures(true)"),
    ("build.gradle", "useJUnitPlatform()", "useJUnitPlatform()\nexclude '**/SumTest*'"),
    ("build.gradle", "useJUnitPlatform()", ""),
    ("codecov.yml", "80%", "50%"),
    ("codecov.yml", "80%", "auto"),
    ("codecov.yml", "2%", "20%"),
    ("codecov.yml", "80%", "80%\n        informational: true"),
    ("spec/spec_helper.rb", "branch: 80", "branch: 10"),
    ("spec/spec_helper.rb", "  minimum_coverage line: 90, branch: 80\n", ""),
    ("tarpaulin.toml", "80", "20"),
    ("clippy.toml", "30", "90"),
    ("CMakeLists.txt", "enable_testing()", "add_definitions(-DNDEBUG)\nenable_testing()"),
    ("CMakeLists.txt", "enable_testing()", "set(CMAKE_BUILD_TYPE Release)\nenable_testing()"),
    (".mvn/maven.config", "-B", "-B\n-Dmaven.test.failure.ignore=true"),
    (".golangci.yml", "    - exportloopref\n", ""),
    (".golangci.yml", "linters-settings:\n  gocyclo:\n    min-complexity: 12", "  settings:\n    gocyclo:\n      min-complexity: 40"),
    ("setup.cfg", "[pytest]\naddopts = -ra", "[tool:pytest]\naddopts = -ra --co"),
    ("Cargo.toml", 'unwrap_used = "deny"', 'unwrap_used = { level = "allow", priority = 1 }'),
    ("eslint.config.js", "'no-new-object': 'error'", "'no-object-constructor': 'warn'"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "old", "new"), LOOSER)
def test_a_bar_that_falls_is_refused(path: str, old: str, new: str) -> None:
    assert old in TREE[path]
    after = {path: TREE[path].replace(old, new)}
    assert rules_of(judged(TREE, after, failed("make check"))) & {
        "configuration-loosened", "build-loosened", "runner-loosened"
    }  # fmt: skip


AS_STRICT = [
    ("pom.xml", "<forkCount>1", "<forkCount>2"),
    ("pom.xml", "0.80", "0.85"),
    ("build.gradle", "0.8 ", "0.85 "),
    ("build.gradle", "test {\n", "tasks.named('test') {\n"),
    ("codecov.yml", "80%", "85%"),
    ("codecov.yml", "2%", "1%"),
    ("codecov.yml", "coverage:\n", "comment:\n  layout: diff\ncoverage:\n"),
    ("spec/spec_helper.rb", "branch: 80", "branch: 85"),
    ("tarpaulin.toml", "80", "90"),
    ("clippy.toml", "30", "25"),
    ("CMakeLists.txt", "enable_testing()", "set(CMAKE_CXX_STANDARD 17)\nenable_testing()"),
    (".mvn/maven.config", "-B", "-B\n-T1C"),
    (".golangci.yml", "exportloopref", "copyloopvar"),
    (".golangci.yml", "linters-settings:\n  gocyclo:\n    min-complexity: 12", "  settings:\n    gocyclo:\n      min-complexity: 10"),
    ("setup.cfg", "[pytest]", "[tool:pytest]"),
    ("Cargo.toml", 'unwrap_used = "deny"', 'unwrap_used = { level = "deny", priority = 1 }'),
    ("eslint.config.js", "no-new-object", "no-object-constructor"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "old", "new"), AS_STRICT)
def test_a_bar_that_stands_may_be_spelled_anew(path: str, old: str, new: str) -> None:
    assert old in TREE[path]
    assert judged(TREE, {path: TREE[path].replace(old, new)}, failed("make check")) == ()


ESLINTRC = "module.exports = { root: true, rules: { eqeqeq: 'error' } };\n"
MOVES = [
    (".eslintrc.js", ESLINTRC, ".eslintrc.cjs", ESLINTRC, "'error'", "'off'"),
    (".eslintrc.js", ESLINTRC, ".eslintrc.yml", "root: true\nrules:\n  eqeqeq: error\n", "error", "warn"),
    (".golangci.yml", "linters:\n  enable: [errcheck]\n", ".golangci.yaml", "linters:\n  enable:\n    - errcheck\n", "errcheck", "govet"),
    ("vitest.config.js", "export default { test: { environment: 'node' } };\n", "vitest.config.ts",
     "export default { test: { environment: 'node' } };\n", "environment: 'node'", "retry: 3"),
]  # fmt: skip


@pytest.mark.parametrize("move", MOVES, ids=[move[2] for move in MOVES])
def test_settings_may_move_to_another_form_of_their_file(move: tuple[str, ...]) -> None:
    path, before, moved, after, old, new = move
    tree, gate = {path: before, "src/a.js": "x\n"}, failed("make lint")
    assert judged(tree, {path: "", moved: after}, gate) == ()
    assert judged(tree, {path: "", moved: after.replace(old, new)}, gate)


CONFIG = {
    "eslint.config.js": "export default [{ rules: { eqeqeq: 'error' } }];\n",
    "tox.ini": "[tox]\nenvlist = py\n[testenv]\npassenv = CI HOME\ncommands = pytest -q\n",
    "jest.config.js": "module.exports = { testEnvironment: 'node' };\n",
    "tsconfig.json": '{"compilerOptions": {"strict": true}}\n',
    "src/a.ts": "x\n",
    "fake/a.ts": "x\n",
}
FORMS = [
    ("eslint.config.js", "[{ rules", "[{ ignores: ['dist/'] }, { rules", "[{ ignores: ['src/**'] }, { rules"),
    ("eslint.config.js", "} }]", "} }, { rules: { curly: 'error' } }]", "} }, { rules: { eqeqeq: 'off' } }]"),
    ("tox.ini", "= pytest -q", "= python -m pytest -q {posargs}", "= python -m pytest -q {posargs} --co"),
    ("jest.config.js", "'node'", r"'node', moduleNameMapper: { '\\\\.css$': 'identity-obj-proxy' }",
     "'node', moduleNameMapper: { './a$': '<rootDir>/fake/a' }"),
    ("tsconfig.json", "true}", 'true, "paths": {"@/*": ["src/*"]}}', 'true, "paths": {"react": ["fake/a"]}}'),
]  # fmt: skip


@pytest.mark.parametrize(("path", "old", "fine", "looser"), FORMS)
def test_settings_may_be_put_in_other_words(path: str, old: str, fine: str, looser: str) -> None:
    said = CONFIG[path]
    assert old in said
    assert judged(CONFIG, {path: said.replace(old, fine)}, failed("make lint")) == ()
    assert judged(CONFIG, {path: said.replace(old, looser)}, failed("make lint"))


CASE = """
    import sys
    import unittest
    from unittest import mock

    from kit.core import label


    class T(unittest.TestCase):
        def test_label(self):
            self.assertEqual(label(2), 4)
"""
KIT = {
    "kit/__init__.py": "",
    "kit/core.py": "def label(a):\n    return a\n",
    "tests/test_a.py": CASE,
}
REPLACED = [
    ("    self.assertEqual", "    with mock.patch(f'{__name__}.label'): self.assertEqual"),
    ("    self.assertEqual", "    with mock.patch(target=__name__ + '.label'): self.assertEqual"),
    ("    self.assertEqual", "    with mock.patch.dict(globals(), label=id): self.assertEqual"),
    ("        self.assertEqual", "        label = lambda a: 4\n            self.assertEqual"),
    ("    class T", "    @mock.patch('kit.core.label')\n    class T"),
    ("\n\n    class T", "\n    mock.patch('kit.core.label').start()\n\n    class T"),
]


@pytest.mark.parametrize(("old", "new"), REPLACED)
def test_a_name_replaced_where_it_was_imported_is_a_stand_in(old: str, new: str) -> None:
    after = {"tests/test_a.py": CASE.replace(old, new)}
    assert "code-under-test-mocked" in rules_of(judged(KIT, after, PYTEST))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    self.assertEqual", "    with mock.patch('kit.core.time.time'): self.assertEqual"),
        ("            self.assertEqual(label(2)", "            got = label(2)\n            self.assertEqual(got"),
    ],
)  # fmt: skip
def test_the_world_outside_may_be_replaced(old: str, new: str) -> None:
    assert judged(KIT, {"tests/test_a.py": CASE.replace(old, new)}, PYTEST) == ()

"""Which files decide: those besides the product's source that a gate's verdict depends on."""

import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import PurePosixPath

from msgspec import Struct

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Scene, answered
from atlas_retry.guard.settings import deciding_part, is_shared
from atlas_retry.model import Answer, AnswerWord
from atlas_retry.patterns import regex, words
from atlas_retry.text.commands import commands
from atlas_retry.text.documents import Key, flat, parse
from atlas_retry.text.globs import Globs, globs


class DecidingFiles(Struct, frozen=True, kw_only=True):
    """One kind of deciding files."""

    rule: str
    globs: Globs
    detail: str

    def covers(self, path: str) -> bool:
        """Whether a path is of this kind; settings in test data are data, pipelines are not."""
        is_data = places.is_test(path) and self.rule != "pipeline-changed"
        return self.globs.match(path) and not is_data


TABLE: tuple[DecidingFiles, ...] = tuple(
    DecidingFiles(rule=rule, detail=detail, globs=globs(patterns))
    for rule, detail, patterns in (
        ("pipeline-changed", "a pipeline or hook others rely on was changed", """
        .github/workflows/ .github/actions/ .gitlab-ci.yml .gitlab/ .circleci/ azure-pipelines*.yml
        Jenkinsfile .travis.yml .drone.yml bitbucket-pipelines.yml .buildkite/ appveyor.yml
        .cirrus.yml .woodpecker/ .husky/ .githooks/ lefthook.yml .lefthook.yml
        .pre-commit-config.yaml .pre-commit-hooks.yaml .lintstagedrc* codecov.yml .codecov.yml
        """),
        ("settings-changed", "settings of the checks were changed", """
        ruff.toml .ruff.toml mypy.ini .mypy.ini pytest.ini .pytest.ini pytest.toml tox.ini tox.toml
        .coveragerc .coveragerc.toml .flake8 pylintrc .pylintrc* .isort.cfg .bandit bandit.y*ml
        pyrightconfig.json pyre.toml ty.toml .pycodestyle .pydocstyle* .yapfrc .style.yapf
        .eslintrc* eslint.config.* .prettierrc* prettier.config.* biome.json* tsconfig*.json
        jsconfig.json deno.json* jest.config.* vitest.config.* vitest.workspace.* vite.config.*
        karma.conf.* playwright.config.* cypress.config.* ava.config.* babel.config.* .babelrc*
        .mocharc* .nycrc* .c8rc* .taprc .stylelintrc* stylelint.config.* .xo-config* .swcrc
        webpack.config.* rollup.config.* tsup.config.* .commitlintrc* commitlint.config.*
        .golangci.* golangci.* staticcheck.conf .testcoverage.y*ml go.work
        clippy.toml .clippy.toml rustfmt.toml .rustfmt.toml deny.toml tarpaulin.toml nextest.toml
        .cargo/config* .config/nextest.toml rust-toolchain*
        .rubocop*.yml .rspec .simplecov .standard.yml .reek.yml .minitest*
        phpunit*.xml* phpstan*.neon* psalm.xml* .php-cs-fixer* phpcs.xml* infection.json* pest.php
        checkstyle*.xml pmd*.xml spotbugs*.xml junit-platform.properties testng.xml
        .clang-tidy .clang-format .shellcheckrc shellcheckrc .yamllint* .markdownlint* .hadolint*
        .swiftlint.yml detekt*.yml .scalafmt.conf .editorconfig sonar-project.properties
        _typos.toml .typos.toml typos.toml .codespellrc .jshintrc .jscsrc .tflint.hcl buf.yaml
        .env .env.* !.env.example !.env.sample !.env.template .envrc .npmrc .yarnrc*
        .python-version .nvmrc .tool-versions mise.toml
        sitecustomize.py usercustomize.py *.pth
        """),
        ("recipe-changed", "a recipe that checks may run was changed", """
        Makefile makefile GNUmakefile *.mk justfile Justfile .justfile Taskfile.y*ml noxfile.py
        Rakefile Earthfile dodo.py tasks.py Dockerfile* docker-compose*.y*ml compose*.y*ml
        gulpfile.* Gruntfile.* lerna.json nx.json turbo.json mvnw gradlew mvnw.cmd gradlew.bat
        .mvn/ gradle/ gradle.properties settings.gradle* build.rs binding.gyp extconf.rb build.zig
        build.xml configure.ac *.cmake
        """),
        ("lock-changed", "a lock file was changed: the checks may run with other tools", """
        uv.lock poetry.lock pdm.lock Pipfile.lock package-lock.json npm-shrinkwrap.json yarn.lock
        pnpm-lock.yaml bun.lock bun.lockb Cargo.lock go.sum go.work.sum Gemfile.lock composer.lock
        mix.lock gradle.lockfile packages.lock.json .terraform.lock.hcl .gitmodules
        """),
        ("ignore-changed", "what is ignored is not checked", """
        .gitignore .gitattributes .eslintignore .prettierignore .stylelintignore .dockerignore
        .npmignore .rgignore .ignore .gitleaksignore .semgrepignore .trivyignore .nycignore
        .git-blame-ignore-revs
        """),
    )
)  # fmt: skip


_OUTPUTS = frozenset({"lock-changed", "ignore-changed"})
"""Kinds that tools write when they run."""


def is_code_or_setting(path: str) -> bool:
    """Whether a file may decide and is not the output of a tool."""
    in_table = any(row.covers(path) for row in TABLE if row.rule not in _OUTPUTS)
    return places.is_code(path) or in_table or is_shared(path)


class Reached(Struct, frozen=True, kw_only=True):
    """What commands run, through recipes, package scripts and shell scripts."""

    lines: frozenset[str]
    scripts: frozenset[str]
    """Files of the project that run as the check itself."""
    programs: frozenset[str]
    compared: frozenset[str]
    """Files that a comparing command reads: `diff out.txt expected.txt`."""

    def named(self, path: str) -> str | None:
        """How a file is referred to by what runs; None if it is not."""
        if path in self.scripts:
            return "a gate runs it as the check itself"
        if path in self.compared:
            return "a gate compares with it"
        shared = places.is_code(path) or is_shared(path)
        match = _OF_PROGRAM.match(places.name(path))
        marks = ("dot", "mark") if shared else ("dot", "mark", "form")
        if match and any(match.group(*marks)) and match["name"] in self.programs:
            return f"it is named for {match['name']}, which a gate runs"
        return None


def decides(delta: Delta, scene: Scene, gates: Reached) -> Answer | None:
    """Why the change of a file decides what passes; None if it does not."""
    seen: tuple[str, str] | None = None
    if row := next((row for row in TABLE if row.covers(delta.path)), None):
        seen = row.rule, row.detail
    elif named := gates.named(delta.path):
        seen = "gate-script-changed", named
    elif setting := deciding_part(delta):
        seen = "settings-changed", f"{setting} decides what the checks do"
    elif shadow := _shadows(delta, scene):
        seen = "tool-shadowed", shadow
    elif delta.new_mode == "120000" and delta.old_mode not in (None, "120000"):
        seen = "link-planted", f"is now a link to {delta.new_text}"
    elif delta.old_mode == "100755" and delta.new_mode == "100644":
        seen = "mode-changed", "is no longer executable"
    elif places.is_test(delta.path) and not is_product(delta.path, scene):
        seen = "test-changed", "what the tests prove was changed"
    if seen is None:
        return None
    return answered(AnswerWord.HELD, rule=seen[0], path=delta.path, detail=seen[1])


_SURE = regex(r"(^|/)([tT]ests?|__\w+__|testdata|conftest\.py$)(/|$)")
"""Folders that hold nothing but tests; those of all other names may be the product's."""
_COLLECTED = regex(
    r"""(?x)
    ^\s*(async\s+)?def\s+test\w*\( | ^\s*class\s+(Test\w*|\w+Test\w*)\b | \bfunc\s+Test\w*\(
    | ^\s*(describe|it|test|specify|context|feature|RSpec\.describe|suite|bench)\b[\s.(]
    | @(Test|Parameterized\w+)\b | \#\[(\w+::)?test | \b(TEST|TEST_F|TEST_CASE|SCENARIO)\(
    | \bassert\w*\b | \bexpect\( | \b(pytest|unittest)\b | \[(Fact|Theory|TestMethod|Test)\b
    """,
    re.MULTILINE,
)
"""What a runner collects, or a check asserts."""


def is_product(path: str, scene: Scene) -> bool:
    """Whether code whose path sounds like a test is part of the product.

    No runner collects it, it asserts nothing, and a source or a test imports it; a new one, a
    source.
    """
    if _SURE.search(path) or not places.is_code(path):
        return False
    was_there = path in scene.old_paths
    text_of = scene.old_text if was_there else scene.new_text
    if _COLLECTED.search(text_of(path)):
        return False
    return any(was_there or places.is_source(user) for user in importing(path, scene, text_of))


def importing(path: str, scene: Scene, text_of: Callable[[str], str]) -> Iterator[str]:
    """Other code that imports a module, in the texts of one side of the change."""
    stem = posixpath.splitext(path)[0]
    is_go = path.endswith(".go")
    is_folder = is_go or stem.endswith(("__init__", "index", "/mod"))
    name = places.name(posixpath.dirname(path) if is_folder else stem)
    # each line of Go's `import (...)` is the path of a folder
    start = r'"[\w./-]+/' if is_go else r"\b(import|from|require\w*|use|include|mod)\b.*"
    imported = regex(rf"{start}\b{re.escape(name)}\b")
    others = scene.case.mentions([name]).get(name, frozenset()) | scene.changed.keys()
    for other in filter(places.is_code, others - {path}):
        if imported.search(text_of(other)):
            yield other


_CHECKERS = words("""
    pytest _pytest pluggy iniconfig hypothesis coverage ruff mypy black isort flake8 pylint pyright
    bandit tox nox pre_commit
    """)
"""Modules of checkers, which are installed without being declared."""
_DECLARED = regex(r"(?m)^[\s\"']*([A-Za-z][\w-]*)\s*(?:\[.*?\])?\s*[<>=~!\"']")
"""The name of a package that a project declares."""


def _shadows(delta: Delta, scene: Scene) -> str | None:
    """What a new file shadows: a source for type checkers, or a library for whatever imports it."""
    path = PurePosixPath(delta.path)
    if not delta.is_added:
        return None
    if path.suffix == ".pyi" and str(path.with_suffix(".py")) in scene.old_paths:
        return "type checkers read it instead of the source"
    if path.suffix in (".pyc", ".pyo", ".so", ".class", ".pyd"):
        return "compiled code was added that no source shows"
    module = path.parent if path.stem == "__init__" else path.with_suffix("")
    package = str(module.parent / "__init__.py") in scene.old_paths
    is_import_root = not package and str(module.parent) in (".", "src", "lib", "tests", "test")
    if path.suffix != ".py" or not is_import_root or is_own_package(module.name, scene):
        return None
    files = ("pyproject.toml", "requirements.txt", "requirements-dev.txt", "setup.cfg")
    manifests = "\n".join(scene.old_text(path) for path in scene.old_paths.intersection(files))
    declared = {name.replace("-", "_").lower() for name in _DECLARED.findall(manifests)}
    if module.name in sys.stdlib_module_names | _CHECKERS | declared:
        return f"it would be imported in the place of the library {module.name}"
    return None


def is_own_package(name: str, scene: Scene) -> bool:
    """Whether the project itself is the package of this name."""
    return any(path.startswith((f"{name}/", f"src/{name}/")) for path in scene.old_paths)


_COMPARES = words("diff cmp comm colordiff sha256sum sha1sum md5sum")
_NAMED_CHECK = regex(r"(?i)(^|[\W_])(check|test|verif|valid|lint|assert|ensure|smoke|ci|audit)")
_OF_CHECKS = globs("scripts/ tools/ ci/ .ci/ hack/ dev/ bin/check*")
_ASSERTS = regex(r"\b(assert\w*|expect|raises|difflib|filecmp|unittest|diff|cmp)\b|\bexpected\b")
_OF_PROGRAM = regex(r"""(?x)
    ^(?P<dot>\.)? (?P<name>[\w-]+?) (?P<mark>[-_.]?(rc|ignore|config|version))?
    (?P<form>\.(toml|jsonc?|json5|ya?ml|cfg|ini|conf|xml|[cm]?[jt]s))?$
    """)
"""Files that programs find by their own name."""


def reached(asked: Iterable[str], scene: Scene) -> Reached:
    """What these shell lines run."""
    scripts, programs = set[str](), set[str]()
    compared = set[str]()
    waiting, seen = list(asked), set[str]()
    while waiting:
        line = waiting.pop()
        if line in seen:
            continue
        seen.add(line)
        for command in commands(line):
            programs |= {PurePosixPath(command[0]).name, _module(command).partition("/")[0]}
            waiting += _behind(command, scene)
            compared |= set(command) & scene.old_paths if command[0] in _COMPARES else set()
            if path := _script(command, scene):
                scripts.add(path)
                waiting += _lines_of_script(path, scene)
    return Reached(
        lines=frozenset(seen),
        scripts=frozenset(scripts),
        programs=frozenset(programs),
        compared=frozenset(compared),
    )


_INTERPRETERS = regex(
    r"^(\.|source|(ba|da|z|k)?sh|python[\d.]*|node|deno|bun|tsx|ts-node|ruby|perl|php|Rscript|pwsh)$"
)
_ONLY_READS = regex(
    r"^(\w*sh( -\w+)*? -\w*n|(ruby|perl)( -\w+)*? -\w*c|node (-c|--check)|php( -\w+)*? -l)\b"
)
"""An interpreter that only checks the syntax of its arguments."""
_PRODUCT = regex(r"^(src|lib|app|cmd|pkg|internal|packages)/")


_OPTION_OR_VARIABLE = regex(r"^-|=")


def _behind(command: list[str], scene: Scene) -> list[str]:
    """The lines that a runner runs: recipes, package scripts, hooks."""
    plain = [word for word in command[1:] if not _OPTION_OR_VARIABLE.search(word)]
    match command[0]:
        case "make" | "gmake":
            files = map(scene.old_text, _MAKEFILES)
            return list(chain.from_iterable(_recipes(text, plain) for text in files))
        case "npm" | "yarn" | "pnpm" | "bun" if plain:
            # npm runs others before and after the requested one
            name = next((word for word in plain if word not in ("run", "run-script")), "test")
            wanted = [("scripts", f"{prefix}{name}") for prefix in ("", "pre", "post")]
            return _values("package.json", scene, wanted.__contains__)
        case "pre-commit" | "prek":
            return _values(".pre-commit-config.yaml", scene, lambda key: key[-1] == "entry")
        case "tox":
            return _values("tox.ini", scene, lambda key: key[-1] == "commands")
        case "sh" | "bash" | "dash" | "zsh" if "-c" in command:
            return plain[:1]
    return []


def _values(path: str, scene: Scene, is_wanted: Callable[[Key], bool]) -> list[str]:
    """Values of a settings file at the wanted keys."""
    leaves = flat(parse(path, scene.old_text(path).encode()))
    return [str(value) for key, value in leaves.items() if is_wanted(key)]


_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_RULE = regex(r"(?m)^(?!\.)([\w./-]+(?: [\w./-]+)*)\s*:(?![:=])([^;#\n]*)(.*(?:\n(?:\t.*)?)*)")


def _recipes(makefile: str, targets: list[str]) -> Iterator[str]:
    """Recipe lines of the targets and their prerequisites; of all targets if none is named."""
    rules = _RULE.findall(makefile.replace("\\\n", " "))
    wanted, known = set(targets or chain.from_iterable(rule[0].split() for rule in rules)), 0
    while known < len(wanted):
        known = len(wanted)
        for names, needs, _ in rules:
            wanted.update(needs.split() if wanted.intersection(names.split()) else ())
    for names, _, recipe in rules:
        if wanted.intersection(names.split()):
            yield from (line.strip() for line in recipe.splitlines() if line.startswith("\t"))


def _module(command: list[str]) -> str:
    """The module after `-m`, as a path; empty if there is none."""
    asked = "-m" in command[:-1] and _INTERPRETERS.match(command[0])
    return command[command.index("-m") + 1].replace(".", "/") if asked else ""


def _script(command: list[str], scene: Scene) -> str | None:
    """The file of the project that a command executes, not one that it only reads."""
    if _ONLY_READS.match(" ".join(command)):
        return None
    words = command if not _INTERPRETERS.match(command[0]) else command[1:]
    words = [word for word in words if not word.startswith("-")]
    module = _module(command)
    first = f"{module}.py" if module else words[0] if words else ""
    path = str(PurePosixPath(first.removeprefix("./"))) if first else ""
    if path not in scene.old_paths:
        return None
    folder = PurePosixPath(path).parent
    in_package = str(folder / "__init__.py") in scene.old_paths
    is_inner = in_package and folder.parts[:1] != ("scripts",)
    return None if is_inner or not _is_check(path, scene) else path


def _is_check(path: str, scene: Scene) -> bool:
    """Whether a file that a gate runs is a check, and not the program under test."""
    if not places.is_code(path) or places.suffix(path) in (".sh", ".bash"):
        return not _PRODUCT.match(path)
    is_named = _OF_CHECKS.match(path) or _NAMED_CHECK.search(places.name(path))
    asserts = places.is_test(path) or is_named or _ASSERTS.search(scene.old_text(path))
    return bool(asserts) and not _PRODUCT.match(path)


def _lines_of_script(path: str, scene: Scene) -> Iterable[str]:
    """Lines of a shell script, which belong to the check too, unless the script is a test."""
    is_shell = places.suffix(path) in (".sh", ".bash", "") and not places.is_test(path)
    lines = scene.old_text(path).splitlines() if is_shell else ()
    return [line for line in lines if line.strip()[:1] not in ("", "#")]

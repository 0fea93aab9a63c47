"""Lines with `{files}` and of affected tests: proposed only where they judge as the gate does."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from atlas_retry.text.file_names import arguments
from tests.init.test_detect import chosen
from tests.init.test_trying import environ, root, written
from tests.needs import needs
from tests.programs import with_programs
from tests.repositories import write
from tests.tools import go_cache

__all__ = ["environ", "root"]

CI = "on: push\njobs: {{a: {{steps: [{{run: '{}'}}]}}}}\n"
DEV = dict.fromkeys(("eslint", "prettier", "vitest"), "*")


def line(run: str, **files: str) -> tuple[str | None, tuple[str, ...]]:
    """The narrower line for one of CI, and the files that it takes but for settings."""
    given = {path.replace("__", "/").replace("_dot_", "."): text for path, text in files.items()}
    package = json.dumps({"devDependencies": DEV})
    ci = {".github/workflows/ci.yml": CI.format(run), "package.json": package}
    (gate,) = (one for one in chosen(ci | given) if one.run == run)
    return gate.recheck, tuple(glob for glob in gate.files if not glob.startswith("!"))


PY = ("*.py", "*.pyi", "*.ipynb")


@pytest.mark.parametrize(
    ("run", "files", "expected", "taken"),
    [
        ("ruff check", {}, "ruff check --force-exclude {files}", PY),
        ("ruff check --fix src a/b.py", {"a__b_dot_py": ""},
         "ruff check --fix --force-exclude {files}",
         ("src/**/*.py", "src/**/*.pyi", "src/**/*.ipynb", "a/b.py")),
        ("uvx ruff format --check .", {}, "uvx ruff format --check --force-exclude {files}", PY),
        ("black --check -l 99 .", {}, "black --check -l 99 {files}", PY),
        ("isort -c .", {}, "isort -c --filter-files {files}", PY[:2]),
        ('npx prettier --check "src/**/*.ts"', {},
         "npx prettier --check --ignore-unknown {files}", ("src/**/*.ts",)),
        ("npx eslint --max-warnings 0 lib", {"eslint_dot_config_dot_js": ""},
         "npx eslint --max-warnings 0 --no-warn-ignored {files}", None),
        ("shellcheck bin/*.sh", {}, "shellcheck {files}", ("bin/*.sh",)),
        ("go test -race ./...", {"go_dot_mod": ""},
         r"go test -race $(printf './%s\n' {files} | sed 's|/[^/]*$|/...|' | sort -u)", ("*.go",)),
        ("npx vitest run --silent", {},
         "npx vitest related --run --silent --coverage.enabled=false {files}", None),
    ],
)  # fmt: skip
def test_a_narrower_line_takes_the_files_that_the_gate_finds(
    run: str, files: dict[str, str], expected: str, taken: tuple[str, ...] | None
) -> None:
    found, globs = line(run, **files)
    assert found == expected
    assert taken is None or globs == taken


@pytest.mark.parametrize(
    ("run", "files"),
    [
        ("ruff check", {"ruff_dot_toml": 'include = ["src/*.py"]'}),
        ("black .", {"pyproject_dot_toml": "[tool.black]\nextend-exclude = 'gen'\n"}),
        ("black --exclude gen .", {}),
        ("flake8", {"setup_dot_cfg": "[flake8]\nexclude = gen\n"}),
        ("npx eslint .", {"_dot_eslintrc": "{}"}),
        ("shellcheck *.sh", {}),
        ("ruff check $TARGET", {}),
        ("mypy src", {}),
        ("go test ./...", {"go_dot_mod": "", "sub__go_dot_mod": ""}),
        ("go test -coverprofile=c ./...", {"go_dot_mod": ""}),
    ],
)
def test_without_it_where_the_tool_would_judge_other_files(run: str, files: dict[str, str]) -> None:
    assert "{files}" not in (line(run, **files)[0] or "")


@pytest.mark.parametrize(("ignored", "option"), [(".testmondata*", "--testmon"), ("x", "--lf")])
def test_testmon_needs_the_plugin_and_an_ignored_database(ignored: str, option: str) -> None:
    more = {"requirements_dot_txt": "pytest-testmon\n", "_dot_gitignore": ignored}
    assert line("pytest", **more)[0] == f"pytest {option}"


def test_a_line_for_files_is_written_once_it_found_what_the_gate_finds(
    root: Path, environ: Mapping[str, str]
) -> None:
    write(root, "gen/a.py", "import os\n")
    write(root, "b.py", "import sys\n")
    write(root, "pyproject.toml", "[tool.ruff]\nextend-exclude = ['gen']\n")
    text = written(root, {**environ})
    assert 'recheck: "ruff check --force-exclude {files}"' in text


def test_a_line_for_files_that_judges_others_is_not_written(
    root: Path, environ: Mapping[str, str], tmp_path: Path
) -> None:
    """A stand-in for black that leaves out a folder only where it looks for files itself."""
    write(
        tmp_path, "bin/black", '#!/bin/sh\nshift\n[ "$*" = . ] && exit\n! echo "$*" | grep gen/\n'
    )
    (tmp_path / "bin/black").chmod(0o755)
    write(root, "gen/a.py", "")
    write(root, ".github/workflows/ci.yml", CI.format("black --check ."))
    text = written(root, {**environ, "PATH": f"{tmp_path}/bin:{environ['PATH']}"})
    assert 'run: "black --check ."' in text
    assert "{files}" not in text


@needs("go")
def test_changed_go_packages_are_tested_and_folders_without_one_passed_over(
    tmp_path: Path,
) -> None:
    narrower = line("go test ./...", go_dot_mod="")[0] or ""
    bad = 'import "testing"\nfunc TestA(t *testing.T) { t.Fatal("seen") }\n'
    files = {"go.mod": "module m\ngo 1.20\n", "p/p_test.go": f"package p\n{bad}",
             "w/w.go": "//go:build plan9\npackage w\n", "ok/ok.go": "package ok\n"}  # fmt: skip
    for path, text in files.items():
        write(tmp_path, path, text)
    env = with_programs({"PATH": os.defpath}, "go") | {"GOCACHE": go_cache(), "HOME": str(tmp_path)}
    for changed, code in ((("w/w.go", "ok/ok.go"), 0), (("ok/ok.go", "p/p_test.go"), 1)):
        argv = arguments(narrower, changed, tmp_path / "names", aside=False)
        done = subprocess.run(
            argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        assert ("seen" in done.stdout) is bool(code)

"""Pipelines: laid out or split anew they run the same; a step that goes or gets terms is told."""

from textwrap import dedent

import pytest

from tests.guardcases import PYTEST, judged, rules_of

GITHUB = ".github/workflows/ci.yml"
CI = """
    on: [push,pull_request]
    jobs:
      test:
        runs-on: ubuntu-latest
        strategy:
          matrix:
            python: ['3.11','3.12']
        steps:
          - uses: actions/checkout@v4
          - run: |
              pip install -e .
              ruff check .
              pytest -q
"""
GITLAB = """
    stages: [test]
    test:
      stage: test
      script:
        - pytest -q
        - ruff check .
"""
AS_BEFORE = [
    (GITHUB, CI, "['3.11','3.12']", '["3.11", "3.12"]'),
    (GITHUB, CI, "on: [push,pull_request]", "'on':\n      push:\n      pull_request:"),
    (GITHUB, CI, "['3.11','3.12']", "\n            - '3.11'\n            - '3.12'"),
    (GITHUB, CI, "  test:\n", "  tests:\n"),
    (GITHUB, CI, "pip install -e .", "uv sync"),
    (GITHUB, CI, "run: |\n              pip install -e .\n              ruff check .\n              pytest -q\n",
     "run: pip install -e .\n          - run: ruff check .\n          - name: Test\n            run: python -m pytest -q\n"),
    (GITHUB, CI, "              ruff check .\n              pytest -q\n",
     "              pytest -q\n      lint:\n        steps:\n          - run: ruff check .\n"),
    (GITHUB, CI, "[push,pull_request]", "\n      push:\n        branches: [main]\n      pull_request:"),
    (".gitlab-ci.yml", GITLAB, "[test]", "\n      - test"),
    (".gitlab-ci.yml", GITLAB, "- pytest -q", '- "pytest -q"'),
    (".gitlab-ci.yml", GITLAB, "    - ruff check .\n", "lint:\n      script:\n        - ruff check .\n"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "pipeline", "old", "new"), AS_BEFORE)
def test_a_pipeline_may_be_laid_out_anew(path: str, pipeline: str, old: str, new: str) -> None:
    assert old in pipeline
    assert judged({path: pipeline}, {path: pipeline.replace(old, new)}, PYTEST) == ()


LESS = [
    (GITHUB, CI, "['3.11','3.12']", '["3.12"]'),
    (GITHUB, CI, "[push,pull_request]", "\n      push:\n"),
    (GITHUB, CI, "[push,pull_request]", "\n      push:\n      pull_request:\n        paths: [docs/**]"),
    (GITHUB, CI, "          ruff check .\n", ""),
    (GITHUB, CI, "pip install -e .", "pip install git+https://example.org/kit"),
    (GITHUB, CI, "              pytest -q", '              if [ -n "$FULL" ]; then\n                pytest -q\n              fi'),
    (GITHUB, CI, "              ruff check .\n              pytest -q\n",
     "              pytest -q\n      lint:\n        if: github.ref == 'x'\n        steps:\n          - run: ruff check .\n"),
    (".gitlab-ci.yml", GITLAB, "        - ruff check .\n", "    lint:\n      when: manual\n      script:\n        - ruff check .\n"),
    (".gitlab-ci.yml", GITLAB, "        - ruff check .\n", "    .lint:\n      script:\n        - ruff check .\n"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "pipeline", "old", "new"), LESS)
def test_a_step_that_goes_or_gets_terms_is_told(
    path: str, pipeline: str, old: str, new: str
) -> None:
    assert old in pipeline
    after = dedent(pipeline.replace(old, new))
    assert "pipeline-loosened" in rules_of(judged({path: pipeline}, {path: after}, PYTEST))


HOOKS = """
    repos:
      - repo: https://github.com/psf/black
        rev: 23.1.0
        hooks:
          - id: black
      - repo: https://github.com/astral-sh/ruff-pre-commit
        rev: v0.9.0
        hooks:
          - id: ruff
            stages: [commit, push]
"""


@pytest.mark.parametrize(
    ("old", "fine", "looser"),
    [
        ("github.com/psf/black\n", "github.com/psf/black-pre-commit-mirror\n", "github.com/x/black\n"),
        ("github.com/psf/black\n", "github.com/psf/black.git\n", "gitlab.com/psf/black\n"),
        ("id: ruff\n", "id: ruff-check\n", "id: ruff-format\n"),
        ("[commit, push]", "[pre-commit, pre-push]", "[manual]"),
    ],
)  # fmt: skip
def test_hooks_may_have_the_names_of_today(old: str, fine: str, looser: str) -> None:
    path = ".pre-commit-config.yaml"
    assert old in HOOKS
    assert judged({path: HOOKS}, {path: HOOKS.replace(old, fine)}, PYTEST) == ()
    found = rules_of(judged({path: HOOKS}, {path: HOOKS.replace(old, looser)}, PYTEST))
    assert "pre-commit-loosened" in found


MAKE = """
    .PHONY: test lint
    test:
    	pytest -q
    lint:
    	ruff check .
    	mypy src
"""
BOTH = "	ruff check .\n    	mypy src\n"


@pytest.mark.parametrize(
    ("old", "fine", "looser"),
    [
        ("	pytest -q", "	$(PY) -m pytest -q\n    PY ?= python3", "	$(PY) -m pytest -q\n    PY ?= true #"),
        ("mypy src", "mypy $(SRC)\n    SRC := src", "mypy $(SRC)\n    SRC := src/a.py"),
        (BOTH, "	ruff check . && mypy src\n", "	ruff check . || mypy src\n"),
        ("lint:\n    " + BOTH, "lint: ruff types\n    ruff:\n    	ruff check .\n    types:\n    	mypy src\n",
         "lint: ruff\n    ruff:\n    	ruff check .\n    types:\n    	mypy src\n"),
        ("pytest -q", "pytest -q --strict-markers", "pytest -q tests/a.py"),
        ("mypy src", "mypy --strict src tests", "mypy src --exclude tests"),
    ],
)  # fmt: skip
def test_recipes_may_be_put_in_other_words(old: str, fine: str, looser: str) -> None:
    assert old in MAKE
    assert judged({"Makefile": MAKE}, {"Makefile": MAKE.replace(old, fine)}, PYTEST) == ()
    found = rules_of(judged({"Makefile": MAKE}, {"Makefile": MAKE.replace(old, looser)}, PYTEST))
    assert "make-loosened" in found

"""Exemptions cut down to a part or to finer codes: what exempts more is told, what less is left."""

import pytest

from tests.guardcases import RUFF, judged, rules_of

PROJECT = {"pkg/a.py": "x = 1\n", "pkg/gen/b.py": "y = 1\n", "tests/test_a.py": "z = 1\n"}
RULES = '[lint]\nselect = ["E", "S"]\n'
CUT = {
    "for the tests alone": ("ruff.toml", f'{RULES}ignore = ["S101"]\n', f'{RULES}[lint.per-file-ignores]\n"tests/**" = ["S101"]\n'),
    "one of two for the tests": ("ruff.toml", f'{RULES}extend-ignore = ["S101", "E501"]\n', f'{RULES}extend-ignore = ["E501"]\n[lint.extend-per-file-ignores]\n"tests/*" = ["S101"]\n'),
    "in pyproject.toml": ("pyproject.toml", '[tool.ruff.lint]\nignore = ["S"]\n', '[tool.ruff.lint.per-file-ignores]\n"tests/**/*.py" = ["S101", "S105"]\n'),
    "fewer files": ("ruff.toml", '[lint.per-file-ignores]\n"*" = ["S101"]\n', '[lint.per-file-ignores]\n"tests/**" = ["S101"]\n'),
    "a folder within": ("ruff.toml", '[lint.per-file-ignores]\n"tests/**" = ["S101"]\n', '[lint.per-file-ignores]\n"tests/unit/**" = ["S101"]\n'),
    "lines of Flake8": (".flake8", "[flake8]\nextend-ignore = E203,F401\n", "[flake8]\nextend-ignore = E203\nper-file-ignores =\n    pkg/__init__.py:F401\n"),
    "finer codes": ("ruff.toml", f'{RULES}ignore = ["S1"]\n', f'{RULES}ignore = ["S101", "S105"]\n'),
    "a whole family selected": ("ruff.toml", '[lint]\nselect = ["E4", "E7", "F"]\n', '[lint]\nselect = ["E", "F"]\n'),
    "all selected": ("ruff.toml", '[lint]\nselect = ["E", "F"]\nignore = ["E501"]\n', '[lint]\nselect = ["ALL"]\nignore = ["E501"]\n'),
    "an option of mypy for the tests": ("pyproject.toml", "[tool.mypy]\nstrict = true\ndisallow_untyped_defs = false\n", '[tool.mypy]\nstrict = true\n\n[[tool.mypy.overrides]]\nmodule = "tests.*"\ndisallow_untyped_defs = false\n'),
    "one library in mypy.ini": ("mypy.ini", "[mypy]\nignore_missing_imports = True\n", "[mypy]\n\n[mypy-yaml.*]\nignore_missing_imports = True\n"),
    "a rule of ESLint": (".eslintrc.json", '{"rules": {"no-console": "off"}}', '{"rules": {"no-console": "error"}, "overrides": [{"files": ["bin/**"], "rules": {"no-console": "off"}}]}'),
    "a linter of Go": (".golangci.yml", "linters:\n  enable: [gosec]\n  disable: [funlen]\n", "linters:\n  enable: [gosec, funlen]\nissues:\n  exclude-rules:\n    - path: _test\\.go\n      linters: [funlen]\n"),
    "a folder of those omitted": ("pyproject.toml", '[tool.coverage.run]\nomit = ["pkg/*"]\n', '[tool.coverage.run]\nomit = ["pkg/gen/*"]\n'),
}  # fmt: skip
WIDENED = {
    "another code for the tests": ("ruff.toml", f'{RULES}ignore = ["S101"]\n', f'{RULES}[lint.per-file-ignores]\n"tests/**" = ["S101", "E501"]\n'),
    "a code that was selected again": ("ruff.toml", '[lint]\nselect = ["S101"]\nignore = ["S"]\n', '[lint]\nselect = ["S101"]\n[lint.per-file-ignores]\n"tests/**" = ["S"]\n'),
    "more files": ("ruff.toml", '[lint.per-file-ignores]\n"tests/**" = ["S101"]\n', '[lint.per-file-ignores]\n"**" = ["S101"]\n'),
    "other files": ("ruff.toml", '[lint.per-file-ignores]\n"tests/**" = ["S101"]\n', '[lint.per-file-ignores]\n"pkg/**" = ["S101"]\n'),
    "other lines of Flake8": (".flake8", "[flake8]\nextend-ignore = E203\n", "[flake8]\nextend-ignore = E203\nper-file-ignores =\n    pkg/__init__.py:F401\n"),
    "broader codes": ("ruff.toml", f'{RULES}ignore = ["S101"]\n', f'{RULES}ignore = ["S1"]\n'),
    "a family that is ignored": ("ruff.toml", '[lint]\nselect = ["E501", "F"]\nignore = ["E"]\n', '[lint]\nselect = ["E", "F"]\nignore = ["E"]\n'),
    "another option of mypy": ("pyproject.toml", "[tool.mypy]\nstrict = true\ndisallow_untyped_defs = false\n", '[tool.mypy]\nstrict = true\n\n[[tool.mypy.overrides]]\nmodule = "pkg.*"\nignore_errors = true\n'),
    "the project in mypy.ini": ("mypy.ini", "[mypy]\nignore_missing_imports = True\n", "[mypy]\n\n[mypy-pkg.*]\nignore_errors = True\n"),
    "another rule of ESLint": (".eslintrc.json", '{"rules": {"no-console": "off"}}', '{"rules": {"no-console": "error"}, "overrides": [{"files": ["bin/**"], "rules": {"no-undef": "off"}}]}'),
    "another linter of Go": (".golangci.yml", "linters:\n  enable: [gosec]\n  disable: [funlen]\n", "linters:\n  enable: [gosec, funlen]\nissues:\n  exclude-rules:\n    - path: a\\.go\n      linters: [gosec]\n"),
    "a folder more omitted": ("pyproject.toml", '[tool.coverage.run]\nomit = ["pkg/gen/*"]\n', '[tool.coverage.run]\nomit = ["pkg/*"]\n'),
}  # fmt: skip


@pytest.mark.parametrize("name", CUT)
def test_an_exemption_may_be_cut_down(name: str) -> None:
    path, before, after = CUT[name]
    assert judged({**PROJECT, path: before}, {path: after}, RUFF) == ()


@pytest.mark.parametrize("name", WIDENED)
def test_an_exemption_may_not_reach_further(name: str) -> None:
    path, before, after = WIDENED[name]
    found = judged({**PROJECT, path: before}, {path: after}, RUFF)
    assert rules_of(found) == {"configuration-loosened"}

"""What an agent is told not to edit, as globs for its deny rules and its prompt."""

from collections.abc import Iterable

from atlas_retry.text.globs import words

PROTECTED = tuple(sorted(words("""
    .atlas/** atlas.yaml .git/** .github/** .gitlab-ci.yml .circleci/** .husky/** lefthook.yml
    .pre-commit-config.yaml **/ruff.toml **/.ruff.toml **/mypy.ini **/.mypy.ini **/pytest.ini
    **/tox.ini **/.coveragerc **/.flake8 **/.pylintrc **/pyrightconfig.json **/.eslintrc*
    **/eslint.config.* **/.eslintignore **/.prettierrc* **/.prettierignore **/tsconfig*.json
    **/jest.config.* **/vitest.config.* **/.golangci.* **/clippy.toml **/rustfmt.toml
    **/.shellcheckrc **/sitecustomize.py **/usercustomize.py noxfile.py **/Makefile
    **/GNUmakefile
    """)))  # fmt: skip
"""Files that are nothing but settings of checks. Tests are not among them: a lint or type error
may have to be fixed there; the rules watch over what they prove."""


def protected_globs(
    protect: Iterable[str] = (), allow: Iterable[str] = (), sources: Iterable[str] = ()
) -> tuple[str, ...]:
    """The built-in globs, the user's and atlas's own files, without what is allowed."""
    lifted = frozenset(allow)
    wanted = (*PROTECTED, *protect, *sources)
    return tuple(glob for glob in dict.fromkeys(wanted) if glob not in lifted)

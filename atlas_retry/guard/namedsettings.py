"""Settings whose meaning their name alone tells: versions, options, severities. Reads no file."""

import re
import shlex

from atlas_retry.guard.case import Scene
from atlas_retry.guard.directions import Key
from atlas_retry.guard.environment import steers_tools
from atlas_retry.guard.severity import ERROR, WARN, as_severe, options_as_strict


def by_its_name(key: Key, before: object, after: object, scene: Scene) -> bool | None:
    """Whether a setting with a meaning of its own is as strict; None for any other."""
    name = key[-1].replace("-", "_")
    if name in ("target_version", "python_version"):
        return before is None or after is None or _release(after) >= _release(before)
    if name in ("env_list", "envlist"):
        gone = entries(before) - entries(after)
        return all(re.match(r"(py|pypy|\{?py)\d*", environment) for environment in gone)
    if {"setenv", "set_env"} & {name, *key[-2:-1]}:
        return _variables_kept(_variables(key, before), _variables(key, after))
    if "addopts" in key or name == "commands":
        is_new = name == "commands" and before is None and _is_new_section(key[0], scene)
        return is_new or _options_kept(before, after)
    return (
        _of_runners(name, before, after) if name in _OF_RUNNERS else _of_linters(key, before, after)
    )


_OF_RUNNERS = frozenset({"empty_parameter_set_mark", "filterwarnings"})


def _of_runners(name: str, before: object, after: object) -> bool:
    if name == "empty_parameter_set_mark":
        return after in ("fail_at_collect", before)
    return _warnings_kept(before, after)


def _of_linters(key: Key, before: object, after: object) -> bool | None:
    if ("rules" in key and key[0] != "project") or "lints" in key:
        enough = WARN if "lints" in key else ERROR
        return as_severe(before, after, fresh=enough) and options_as_strict(before, after)
    if key[-1].lower() in ("environment", "testenvironment") and after in _ENVIRONMENTS:
        return True
    if key[-2:] == ("run", "timeout"):  # golangci-lint's own: no check hangs on it
        return True
    return None


def _warnings_kept(before: object, after: object) -> bool:
    """Whether warnings that were errors still are, and none is newly passed over."""
    had, has = (frozenset(_lines(value)) for value in (before, after))
    gone = {rule for rule in had - has if rule.startswith("error")}
    return not gone and all(rule.startswith("error") for rule in has - had)


_STRICT_VARIABLES = re.compile(
    r"^(PYTHONWARNINGS=error(::.*)?|PYTHONDEVMODE=1|PYTHONHASHSEED=random|PYTHONSAFEPATH=1"
    r"|PYTHON(UTF8|FAULTHANDLER|UNBUFFERED|DONTWRITEBYTECODE|ASYNCIODEBUG)=1|COVERAGE_FILE=\S+)$"
)


def _variables(key: Key, value: object) -> frozenset[str]:
    """Assignments of an environment of tox: lines, or one by its key."""
    is_one = key[-1] not in ("setenv", "set_env")
    said = () if value is None else (f"{key[-1]}={value}",) if is_one else _lines(value)
    return frozenset(re.sub(r"\s*=\s*", "=", line, count=1) for line in said)


def _variables_kept(had: frozenset[str], has: frozenset[str]) -> bool:
    """Whether nothing that steers tools went or came, but what makes them ask for more."""
    gone = {line for line in had - has if _steers(line)}
    return not gone and not any(
        _steers(line) for line in has - had if not _STRICT_VARIABLES.match(line)
    )


def _steers(line: str) -> bool:
    """Whether an assignment does, or names a file of assignments."""
    name, equals, _ = line.partition("=")
    return not equals or steers_tools(name)


def _lines(value: object) -> tuple[str, ...]:
    if isinstance(value, tuple):
        return tuple(map(str, value))
    return tuple(line.strip() for line in str(value or "").splitlines() if line.strip())


def _release(value: object) -> tuple[int, ...]:
    """The version of Python that a setting names: `py311` and 3.11 are one."""
    found = re.search(r"3\.?(\d+)", str(value))
    return (3, int(found[1])) if found else ()


def _is_new_section(name: str, scene: Scene) -> bool:
    """Whether nothing spoke of an environment of tox: it stands in the way of none."""
    return name.partition(":")[2].encode() not in (scene.old("tox.ini") or b"")


def entries(value: object) -> frozenset[str]:
    """The members of a list, or the words of a text."""
    if isinstance(value, tuple):
        return frozenset(map(str, value))
    if isinstance(value, str):
        return frozenset(re.split(r"[\s,]+", value.strip())) - {""}
    return frozenset() if value is None else frozenset({str(value)})


_ENVIRONMENTS = ("node", "jsdom", "happy-dom", "edge-runtime")
"""What Jest and Vitest bring themselves; another one is code that runs around every test."""
_FINE_OPTIONS = re.compile(
    r"^(-[qvlsx]+|-r\w*|--tb=.*|--strict.*|--durations.*|--color.*|-n|auto|\d+"
    r"|--cov(=.*|-report.*|-branch)?"
    r"|--cov-fail-under=.*|--doctest-modules|--showlocals|--import-mode.*|--maxfail.*|--exitfirst|--ff|"
    r"--failed-first|-W|error(::.*)?|--junit-?xml.*|-p|xdist|randomly|--dist.*|--verbose|--quiet|--asyncio-mode.*|--disable-warnings|--no-header)$"
)
_NEEDED_OPTIONS = re.compile(
    r"^(--strict.*|--cov.*|--doctest.*|-W|error.*|--runslow|--run.*|[^-].*)$"
)


def _options_kept(before: object, after: object) -> bool:
    """Whether no option went that tests more, and none came but those that test no less."""
    old, new = _tokens(before), _tokens(after)
    gone = [o for o in old if o not in new and _NEEDED_OPTIONS.match(o)]
    came = [o for o in new if o not in old and not _FINE_OPTIONS.match(o)]
    return not gone and not came


def _tokens(value: object) -> list[str]:
    if value is None:
        return []
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    text = re.sub(r"\{posargs[^{}]*\}|(?m:^|(?<=\s))\{?(env)?python3?\}? -m (?=\w)", " ", text)
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()

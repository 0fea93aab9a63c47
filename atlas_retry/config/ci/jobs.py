"""Jobs of CI as ordered lines, and the values of a matrix that change what is checked. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.config.ci.expressions import UNKNOWN, text_of
from atlas_retry.config.project import Table, table
from atlas_retry.patterns import regex, words

MAX_ROWS = 256
ROOT = "$(git rev-parse --show-toplevel)"
"""The workspace of CI, in a command."""
OTHER_SYSTEMS = regex(r"windows|macos|\bwin\d|mac-|\bosx\b|freebsd", re.IGNORECASE)
_VARIABLE = regex(r"[A-Za-z_]\w*", re.ASCII)
OTHER_PROCESSORS = regex(
    r"aarch64|\barm|i[356]86|powerpc|ppc64|s390x|riscv|mips|wasm|32.?bit", re.IGNORECASE
)
UNSTABLE = regex(
    r"nightly|beta|canary|\bdev\b|experimental|pypy|graal|jruby|truffle|\dt\b|\brc|head|edge",
    re.IGNORECASE,
)
_VERSIONS = regex(
    r"(?i)[a-z/-]{0,20}v?\d[\w.*+-]*|lts(?:/\*)?|latest|stable|nightly|beta|canary|current"
    r"|debug|release|relwithdebinfo|minsizerel|fastbuild|opt|dbg"
)
_ENVIRONMENT = words("""
    os platform runner runs on arch architecture target triple host image container machine vm
    compiler cc cxx gcc clang msvc toolchain channel msrv cross shell version versions python py
    pyver node nodejs go golang java jdk jvm ruby php perl rust elixir otp erlang dotnet sdk kotlin
    scala swift xcode experimental continue fail allow locale tz timezone
    """)
"""Words in the name of an axis: it is about where a check runs, not about what is checked."""


class CiLine(Struct, frozen=True, kw_only=True):
    """One command of a job."""

    line: str
    where: str
    """The file."""
    cwd: str = "."
    env: tuple[tuple[str, str], ...] = ()
    inner: tuple[str, ...] = ()
    """The simple commands in it."""
    unknown: tuple[str, ...] = ()
    """Variables and expressions that only CI can fill in."""
    hidden: tuple[str, ...] = ()
    """Names of variables whose values only CI knows, such as secrets."""
    condition: str = ""
    """When CI runs it, if only CI can tell."""
    left_out: str = ""
    """Why CI does not run it for a push or a pull request on Linux; empty if it does."""
    required: bool = True
    """Whether its failure fails the job."""

    @property
    def key(self) -> str:
        return f"{self.cwd}: {self.line}"

    @property
    def set_env(self) -> tuple[tuple[str, str], ...]:
        """Its variables that have a value, and a name that a shell can read."""
        named = (pair for pair in self.env if _VARIABLE.fullmatch(pair[0]))
        return tuple((name, value) for name, value in named if value)

    @property
    def file(self) -> str:
        return self.where.rpartition("/")[2]


class CiJob(Struct, frozen=True, kw_only=True):
    """One job: its lines run in this order."""

    key: str
    """File and name, by which `needs` calls it."""
    lines: tuple[CiLine, ...]
    needs: tuple[str, ...] = ()
    system: str = ""
    """The system that it runs on, if it is another one than Linux."""


def not_run(job: CiJob, why: str) -> CiJob:
    """The job with a reason why nobody runs its lines here."""
    lines = (replace(line, left_out=line.left_out or why) for line in job.lines)
    return replace(job, lines=tuple(lines))


def combinations(matrix: object) -> list[Mapping[str, object]]:
    """The jobs that a matrix makes, as GitHub does: product, `exclude`, `include`."""
    given = table(matrix)
    axes = {name: value for name, value in given.items() if name not in ("include", "exclude")}
    excluded = [*_rows(given.get("exclude"))]
    rows = [row for row in _product(axes) if not any(_is_within(rule, row) for rule in excluded)]
    originals = [dict(row) for row in rows]
    for more in _rows(given.get("include")):
        fitting = _fitting(more, originals, axes)
        for number in fitting:
            rows[number] |= more
        if not fitting:
            rows.append(dict(more))
    return [*rows] or [{}]


def _product(axes: Table) -> Iterator[dict[str, object]]:
    values = (value if isinstance(value, list) else [UNKNOWN] for value in axes.values())
    for row in islice(product(*values), MAX_ROWS if axes else 0):
        yield dict(zip(axes, row, strict=True))


def _fitting(more: Table, rows: Sequence[Table], axes: Table) -> list[int]:
    """The rows that an entry of `include` adds to: it must change no value of an axis."""
    fixed = {name: more[name] for name in more.keys() & axes.keys()}
    return [number for number, row in enumerate(rows) if _is_within(fixed, row)]


def _rows(value: object) -> Iterator[Table]:
    yield from map(table, value if isinstance(value, list) else [])


def _is_within(part: Table, row: Table) -> bool:
    return all(row.get(name, UNKNOWN) == value for name, value in part.items())


def alike(
    rows: Sequence[Mapping[str, object]], used: Iterable[str]
) -> list[list[Mapping[str, object]]]:
    """The rows by the values that change what is checked, in each group the best one first.

    Best is Linux and a stable version. `used` are the names that the job's commands read, as
    `folder` or `job.target`.
    """
    values = {name: [_value(row, name) for row in rows] for name in used}
    subjects = [name for name in values if not _is_environment(name, values[name])]
    groups: dict[str, list[Mapping[str, object]]] = {}
    for row in rows:
        key = json.dumps([text_of(_value(row, name)) for name in subjects])
        groups.setdefault(key, []).append(row)
    ranked = (sorted(enumerate(group), key=_rank, reverse=True) for group in groups.values())
    return [[row for _, row in group] for group in ranked]


def _is_environment(name: str, values: list[object]) -> bool:
    """Whether an axis is about where a check runs, by a word of its name, or its versions."""
    parts = re.split(r"[._-]", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name.rpartition(".")[2]).lower())
    texts = (text_of(value) for value in values if value is not None)
    return not _ENVIRONMENT.isdisjoint(parts) or all(map(_VERSIONS.fullmatch, texts))


def _rank(numbered: tuple[int, Mapping[str, object]]) -> tuple[bool, bool, bool, int, int]:
    """Sort key: Linux, a stable version, this kind of processor, few values, the last one."""
    number, row = numbered
    text = " ".join(map(text_of, row.values()))
    is_here = not OTHER_SYSTEMS.search(text)
    is_native = not OTHER_PROCESSORS.search(text)
    return is_here, not UNSTABLE.search(text), is_native, -len(row), number


def _value(row: Mapping[str, object], name: str) -> object:
    value: object = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value

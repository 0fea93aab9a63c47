"""Traces failing tests of Go: one test binary with coverage, run once a test. Ranks nothing."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from atlas_retry.gates.plan import Plan, command_of
from atlas_retry.gates.trace.values import Seen, TraceRequest
from atlas_retry.model import Diagnostic
from atlas_retry.process import run

MAX_FAILING, MAX_PASSING, MAX_PACKAGES = 12, 40, 2
_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)
# https://go.dev/blog/cover: name.go:line.column,line.column numberOfStatements count
_BLOCK = re.compile(r"^(\S+\.go):(\d+)\.\d+,\d+\.\d+ \d+ ([1-9]\d*)$", re.MULTILINE)
_SCRIPT = """\
go test -c -cover -coverpkg=./... -o {out}/bin {package} || exit 1
cd {package} || exit 1
{failing}
{out}/bin -test.list '^Test' | grep -vxF -e ok {excluded} | head -n {limit} |
while read -r name; do
  {out}/bin -test.run "^$name\\$" -test.coverprofile "{out}/passing-$name" >{out}/said 2>&1 ||
    rm -f "{out}/passing-$name"
done
"""


def seen_in_go(wanted: TraceRequest, plan: Plan) -> list[Seen]:
    """What each failing test and some of its neighbours run; a test that panics says nothing.

    Raises Interrupted, OSError, UnicodeError.
    """
    root = plan.root / wanted.gate.cwd
    packages = list(dict.fromkeys(_package(test) for test in wanted.tests))[:MAX_PACKAGES]
    timeout_s = wanted.timeout_s / len(packages)
    found: list[Seen] = []
    for number, package in enumerate(packages):
        tests = [test for test in wanted.tests if _package(test) == package]
        folder = plan.logs / f"{wanted.name}-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        script = _script(package, tests, folder)
        command = command_of(wanted.gate, script, plan, wanted.name)
        run(replace(command, timeout_s=timeout_s, keep_daemons=False))
        found += _profiles(folder, root)
    return found


def _package(test: Diagnostic) -> str:
    return str(test.test_id).partition("::")[0]


def _script(package: str, tests: list[Diagnostic], folder: Path) -> str:
    names = list(dict.fromkeys(str(test.test_id).partition("::")[2] for test in tests))
    out = shlex.quote(str(folder))
    failing = (
        f"{out}/bin -test.run {shlex.quote(_pattern(name))} "
        f"-test.coverprofile {out}/failing-{number} >{out}/said 2>&1"
        for number, name in enumerate(names[:MAX_FAILING])
    )
    excluded = (f"-e {shlex.quote(name.partition('/')[0])}" for name in names)
    return _SCRIPT.format(
        out=out,
        package=shlex.quote(f"./{package}"),
        failing="\n".join(failing),
        excluded=" ".join(excluded),
        limit=MAX_PASSING,
    )


def _pattern(name: str) -> str:
    return "/".join(f"^{re.escape(part)}$" for part in name.split("/"))


def _profiles(folder: Path, root: Path) -> Iterator[Seen]:
    failing = [file.read_text(encoding="utf-8") for file in sorted(folder.glob("failing-*"))]
    passing = [file.read_text(encoding="utf-8") for file in sorted(folder.glob("passing-*"))]
    module = _MODULE.search((root / "go.mod").read_text(encoding="utf-8")) if failing else None
    if module:
        bad, good = _counted(failing, module[1]), _counted(passing, module[1])
        lines = tuple((path, 0, "", line, bad[path, line], good[path, line]) for path, line in bad)
        yield Seen(failed=len(failing), passed=len(passing), lines=lines)


def _counted(profiles: list[str], module: str) -> Counter[tuple[str, int]]:
    """How many profiles ran a block, by path below the module and first line."""
    counted = Counter[tuple[str, int]]()
    for profile in profiles:
        ran = {(path, int(line)) for path, line, _ in _BLOCK.findall(profile)}
        counted.update((path.removeprefix(f"{module}/"), line) for path, line in ran)
    return counted

"""What atlas fixes with a real agent, on commits of repositories that you name. It costs money.

python bench/live.py CASES.json --max-cost-usd USD [--backend anthropic] [--model NAME ...]
                     [--json OUT.json] [--markdown OUT.md]

CASES.json is a list of {"repository": path or URL, "fix": commit, "tests": [paths], "run": gate}.
A case is the parent of the fix with the fix's own version of `tests`. Your key comes from the
environment. Nothing is written into the repositories; each case is a clone that is deleted. A case
begins only while money is left, and gets what is left as its own limit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from atlas_retry.model import Verdict

IDENTITY = ("-c", "user.name=live", "-c", "user.email=live@example.invalid")
LIMIT_S = 7200.0
MIN_USD = 0.001
"""Less is nothing to begin with."""
REFUSED = (Verdict.REJECTED, Verdict.GAVE_UP)


class LiveCase(Struct, frozen=True, kw_only=True):
    """One commit that fixed something."""

    repository: str
    fix: str
    tests: tuple[str, ...]
    run: str


class LiveResult(Struct, frozen=True, kw_only=True):
    """How one run on one case ended."""

    case: str
    model: str
    verdict: Verdict
    attempts: int
    cost_usd: float
    seconds: float


class Tally(Struct, frozen=True, kw_only=True):
    """All results of one model."""

    model: str
    cases: int
    fixed: int
    held: int
    """Runs whose changes wait for a person."""
    refused: int
    """Runs in which the agent gave up, or that the guard ended."""
    attempts: int
    cost_usd: float

    @property
    def usd_per_fix(self) -> float | None:
        return self.cost_usd / self.fixed if self.fixed else None


def main() -> None:
    """Run every case with every model while there is money, and write the reports."""
    options = _options()
    cases = msgspec.json.decode(options.cases.read_bytes(), type=list[LiveCase])
    results = list(measured(cases, options.model or [""], options.backend, options.max_cost_usd))
    text = markdown(results, len(cases))
    print(text)
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    if options.json:
        document = {"results": results, "models": tallies(results)}
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(document)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("--max-cost-usd", type=float, required=True)
    parser.add_argument("--backend", default="claude-code")
    parser.add_argument("--model", action="append")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    return parser.parse_args()


def measured(
    cases: list[LiveCase], models: list[str], backend: str, max_cost_usd: float
) -> Iterator[LiveResult]:
    """One result a case and model, as long as there is money left."""
    left_usd = max_cost_usd
    for case in cases:
        for model in models:
            if left_usd < MIN_USD:
                return
            with tempfile.TemporaryDirectory(prefix="atlas-live-") as folder:
                root = prepared(case, backend, Path(folder))
                result = _run(case, root, model, left_usd)
            left_usd -= result.cost_usd
            print(f"{result.case} {result.model} {result.verdict}", file=sys.stderr)
            yield result


def prepared(case: LiveCase, backend: str, folder: Path) -> Path:
    """A clone at the parent of the fix, with the fix's tests and a configuration, committed."""
    root = folder / "work"
    source = case.repository if "://" in case.repository else str(Path(case.repository).resolve())
    _git(folder, "clone", "-q", source, str(root))
    _git(root, "checkout", "-q", "--detach", f"{case.fix}~1")
    _git(root, "checkout", "-q", case.fix, "--", *case.tests)
    settings = {
        "version": 1,
        "validation": {"test": [case.run]},
        "agent": {"backend": backend},
    }
    (root / ".atlas").mkdir(exist_ok=True)
    # JSON is YAML
    (root / ".atlas" / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")
    _git(root, "add", "-A")
    _git(root, "commit", "-q", "--no-verify", "-m", "The tests of the fix")
    # the answer must not be in the repository
    _git(root, "remote", "remove", "origin")
    for ref in _git(root, "for-each-ref", "--format=%(refname)").split():
        _git(root, "update-ref", "-d", ref)
    _git(root, "reflog", "expire", "--expire=now", "--all")
    _git(root, "gc", "-q", "--prune=now")
    return root


def _git(folder: Path, *arguments: str) -> str:
    command = ("git", *IDENTITY, *arguments)
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def _run(case: LiveCase, root: Path, model: str, limit_usd: float) -> LiveResult:
    command = [sys.executable, "-m", "atlas_retry", "retry", str(root), "--ai-fix", "--json"]
    command += ["--max-cost-usd", str(limit_usd), *(("--model", model) if model else ())]
    environ = {**os.environ, "ATLAS_HOME": str(root.parent / "state")}
    done = subprocess.run(
        command, env=environ, check=False, stdout=subprocess.PIPE, timeout=LIMIT_S
    )
    run = json.loads(done.stdout)
    return LiveResult(
        case=f"{Path(case.repository).name}@{case.fix[:8]}",
        model=model or "default",
        verdict=Verdict(run["verdict"]),
        attempts=len(run["attempts"]),
        cost_usd=run["cost_usd"] or 0.0,
        seconds=run["duration_ms"] / 1000,
    )


def tallies(results: list[LiveResult]) -> list[Tally]:
    """One a model, in the order in which they were tried."""
    return [
        _tally(model, [result for result in results if result.model == model])
        for model in dict.fromkeys(result.model for result in results)
    ]


def _tally(model: str, results: list[LiveResult]) -> Tally:
    return Tally(
        model=model,
        cases=len(results),
        fixed=sum(result.verdict is Verdict.FIXED for result in results),
        held=sum(result.verdict is Verdict.NEEDS_REVIEW for result in results),
        refused=sum(result.verdict in REFUSED for result in results),
        attempts=sum(result.attempts for result in results),
        cost_usd=sum(result.cost_usd for result in results),
    )


def markdown(results: list[LiveResult], cases: int) -> str:
    """The report: a table of the models, then one of the cases."""
    lines = [
        "| model | cases | fixed | fix rate | USD a fix | attempts a case | held | refused |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in tallies(results):
        a_fix = "-" if one.usd_per_fix is None else f"{one.usd_per_fix:.3f}"
        lines.append(
            f"| {one.model} | {one.cases} of {cases} | {one.fixed} | {one.fixed / one.cases:.2f} "
            f"| {a_fix} | {one.attempts / one.cases:.1f} | {one.held} | {one.refused} |"
        )
    lines += ["", "| case | model | verdict | attempts | USD | s |", "|" + " --- |" * 6]
    lines += [
        f"| {one.case} | {one.model} | {one.verdict} | {one.attempts} "
        f"| {one.cost_usd:.4f} | {one.seconds:.0f} |"
        for one in results
    ]
    return "\n".join((*lines, ""))


if __name__ == "__main__":
    main()

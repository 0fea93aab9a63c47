"""GitLab's code quality report, a subset of the Code Climate format.

Source: docs.gitlab.com, "Code Quality report format".
"""

from collections import Counter
from hashlib import sha256

from atlas_retry.model import Diagnostic, Level
from atlas_retry.reports.documents import encode
from atlas_retry.reports.findings import TOOL
from atlas_retry.reports.phrases import plain
from atlas_retry.reports.problems import problems
from atlas_retry.reports.subject import Subject

SEVERITIES = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTE: "info"}


def report(subject: Subject) -> str:
    """One list of all problems; a failure without a place is reported at the root."""
    named: list[tuple[str, Diagnostic]] = []
    for result in subject.validation.results:
        named += [(result.name, problem) for problem in problems(result)]
    named += [(TOOL, finding.diagnostic) for finding in subject.findings]
    seen: Counter[str] = Counter()
    issues = []
    for name, problem in named:
        # no line numbers; GitLab shows only the first of several with the same fingerprint
        same = problem.fingerprint or f"{problem.rule_id}\0{problem.message}"
        identity = "\0".join((name, problem.tool, problem.path or "", same))
        seen[identity] += 1
        issues.append(_issue(problem, f"{identity}\0{seen[identity]}"))
    return encode(issues)


def _issue(problem: Diagnostic, identity: str) -> dict[str, object]:
    line = problem.region.start_line if problem.region else 1
    rule = problem.rule_id or problem.test_id
    return {
        "description": plain(problem.message) or "no message",
        "check_name": plain(f"{problem.tool}/{rule}" if rule else problem.tool),
        "fingerprint": sha256(identity.encode(errors="backslashreplace")).hexdigest()[:40],
        "severity": SEVERITIES[problem.level],
        "location": {"path": plain(problem.path or "."), "lines": {"begin": max(line, 1)}},
    }

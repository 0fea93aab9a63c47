"""GitLab's code quality report, a subset of the Code Climate format; nothing for other readers.

Source: docs.gitlab.com, "Code Quality report format".
"""

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256

from atlas_retry.model import Diagnostic, Level
from atlas_retry.reports.documents import encode
from atlas_retry.reports.findings import TOOL
from atlas_retry.reports.phrases import complaints, plain
from atlas_retry.reports.subject import Subject

SEVERITIES = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTE: "info"}


def report(subject: Subject) -> str:
    """One list of all complaints; a failure without a place is laid at the root's door."""
    return encode(list(_issues(subject)))


def _issues(subject: Subject) -> Iterator[dict[str, object]]:
    seen: Counter[str] = Counter()
    for name, complaint in _told(subject):
        identity = _identity(name, complaint)
        seen[identity] += 1
        yield _issue(complaint, f"{identity}\0{seen[identity]}")


def _told(subject: Subject) -> Iterator[tuple[str, Diagnostic]]:
    """With the name of the gate; then what the guard answered."""
    for result in subject.validation.results:
        yield from ((result.name, complaint) for complaint in complaints(result))
    yield from ((TOOL, finding.diagnostic) for finding in subject.findings)


def _identity(name: str, complaint: Diagnostic) -> str:
    """Without line numbers; GitLab shows only the first of several with the same fingerprint."""
    told = complaint.fingerprint or f"{complaint.rule_id}\0{complaint.message}"
    return "\0".join((name, complaint.tool, complaint.path or "", told))


def _issue(complaint: Diagnostic, identity: str) -> dict[str, object]:
    line = complaint.region.start_line if complaint.region else 1
    rule = complaint.rule_id or complaint.test_id
    return {
        "description": plain(complaint.message) or "no message",
        "check_name": plain(f"{complaint.tool}/{rule}" if rule else complaint.tool),
        "fingerprint": sha256(identity.encode(errors="backslashreplace")).hexdigest()[:40],
        "severity": SEVERITIES[complaint.level],
        "location": {"path": plain(complaint.path or "."), "lines": {"begin": max(line, 1)}},
    }

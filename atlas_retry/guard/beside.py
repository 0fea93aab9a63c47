"""Rules for deliberate changes outside the code: atlas's own files, git, tools, dependencies."""

import posixpath
from collections.abc import Iterator
from itertools import filterfalse

from msgspec import Struct

from atlas_retry.guard.case import Case, Ruling, Scene, Undo, answered
from atlas_retry.model import AnswerWord
from atlas_retry.text.globs import Globs, globs
from atlas_retry.workspace.files import differing

Seen = tuple[str, str, str]
"""A rule, a path and what was done to it."""


class BesideRule(Struct, frozen=True, kw_only=True):
    """One forbidden change."""

    name: str
    reason: str
    can_be_allowed: bool = False
    answer: AnswerWord = AnswerWord.REFUSED
    only_in_runs: bool = False
    """Whether it is only held outside runs, where a person may have done it."""
    undo: Undo = "file"


OWN = Globs(("/.atlas/", "/atlas.yaml", "/atlas.yml", "/.atlas.yaml"))
_CACHES = globs(
    """
    **/.cache/ **/__pycache__/ .npm/_cacache/ .npm/_logs/ .yarn/ .pnpm-store/ .local/share/
    .local/state/ .cargo/registry/ .cargo/git/ .cargo/.* .gradle/caches/ .gradle/daemon/
    .m2/repository/ go/pkg/ go/telemetry/ .config/go/telemetry/ .pytest_cache/ .mypy_cache/
    .ruff_cache/ .eslintcache .claude/ .claude.json .claude.json.* .bash_history
    .python_history .node_repl_history .viminfo .lesshst .wget-hsts .rustup/tmp/ *.log
    """
)
"""Places outside the workspace that tools write when they run."""
INNOCENT_FACTS = frozenset({"index", "state:ORIG_HEAD", "state:FETCH_HEAD"})
"""Parts of git's state that staging and fetching change."""


RULES: tuple[BesideRule, ...] = tuple(
    BesideRule(name=name, reason=reason, **flags)
    for name, reason, flags in (
        ("atlas-touched", "it decides what has to pass", {"only_in_runs": True}),
        ("protected-path", "the user asked for it to stay as it is", {}),
        ("git-state", "history and settings of git are the user's", {"undo": "attempt"}),
        ("nested-git", "no snapshot holds what it had", {"undo": "nothing"}),
        ("outside-workspace", "only the workspace may change",
         {"can_be_allowed": True, "undo": "nothing"}),
        ("tool-replaced", "the gate would run something else", {"undo": "nothing"}),
        ("dependency-changed", "the gates would run with other code than others have",
         {"can_be_allowed": True, "undo": "nothing"}),
        ("folder-mode", "git does not hold them: others have the ones that were there",
         {"answer": AnswerWord.NOTED}),
    )
)  # fmt: skip


def rulings(scene: Scene) -> Iterator[Ruling]:
    """Forbidden changes outside the code, by rule."""
    case, allowed = scene.case, Globs(scene.case.allow)
    rules = {rule.name: rule for rule in RULES}
    order = [*rules]
    seen = (*_facts(case), *_files(scene))
    for name, path, detail in sorted(seen, key=lambda one: order.index(one[0])):
        rule = rules[name]
        if rule.can_be_allowed and allowed.match(path):
            continue
        word = AnswerWord.HELD if rule.only_in_runs and not case.in_run else rule.answer
        yield Ruling(
            path=path,
            mechanism=f"beside: {name}",
            answer=answered(word, rule=name, path=path, detail=f"{detail} ({rule.reason})"),
            undo="file" if path in case.restorable else rule.undo,
        )


def _facts(case: Case) -> Iterator[Seen]:
    """Changes besides the files: in git's state, but for staging, and outside the workspace."""
    for key in sorted(differing(case.git_before, case.git_after) - INNOCENT_FACTS):
        flagged = key.partition("index-flags:")[2]
        yield "git-state", flagged or ".git", f"git's {key} is not as it was"
    for path in case.nested:
        yield "nested-git", path, "belongs to a repository of its own and was changed"
    for path in map(str, filterfalse(lambda change: _CACHES.match(change.path), case.outside)):
        yield "outside-workspace", path, f"is outside the workspace and was {_how(path, case)}"
    for tool in case.tools:
        where = tool.path or "nothing"
        yield "tool-replaced", tool.path or tool.name, f"`{tool.name}` now leads to {where}"
    for path in case.installed:
        yield "dependency-changed", path, f"is a file of a dependency and was {_how(path, case)}"
    for path in case.modes:
        yield "folder-mode", path, "its permissions were changed, and are given back"


def _how(path: str, case: Case) -> str:
    return "added" if path in case.added else "changed"


def _files(scene: Scene) -> Iterator[Seen]:
    """Changed files and links that are not the agent's to change."""
    case, protected = scene.case, Globs(scene.case.protect)
    for delta in scene.deltas:
        path = delta.path
        if OWN.match(path) or path in case.sources:
            yield "atlas-touched", path, "belongs to atlas"
        if case.protect and protected.match(path):
            yield "protected-path", path, "is protected by guard.protect"
        if "160000" in (delta.old_mode, delta.new_mode):
            yield "git-state", path, "a submodule was added, moved or removed"
        if delta.new_mode == "120000" and leads_out(path, delta.new_text):
            detail = f"is now a link out of the workspace: {delta.new_text}"
            yield "outside-workspace", path, detail


def leads_out(path: str, target: str) -> bool:
    """Whether a link at this path leads out of the workspace."""
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return bool(target) and (target.startswith("/") or inside.startswith("../"))

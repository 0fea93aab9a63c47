"""Rules for deliberate changes outside the code: atlas's own files, git, tools, dependencies.

Each rule is one function over the whole change; what it finds is refused unless its row differs.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from atlas_retry.guard.case import Ruling, Scene, answered
from atlas_retry.model import AnswerWord
from atlas_retry.text.globs import Globs, globs
from atlas_retry.workspace.files import differing

Seen = tuple[str, str]
"""A path and what was done to it."""


class BesideRule(Struct, frozen=True, kw_only=True):
    """One forbidden change."""

    name: str
    reason: str
    check: Callable[[Scene], Iterable[Seen]]
    can_be_allowed: bool = False
    answer: AnswerWord = AnswerWord.REFUSED
    only_in_runs: bool = False
    """Whether it is only held outside runs, where a person may have done it."""
    separable: bool = True
    """Whether restoring the files undoes it; else the whole attempt is rolled back."""
    restorable: bool = True
    """Whether everything can be restored; else the run ends."""


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


def _own_files(scene: Scene) -> Iterator[Seen]:
    """Configuration and state of atlas itself."""
    for delta in scene.deltas:
        if OWN.match(delta.path) or delta.path in scene.case.sources:
            yield delta.path, "belongs to atlas"


def _git_state(scene: Scene) -> Iterator[Seen]:
    """Commits, refs, index flags, hooks and configuration; staging is allowed."""
    before, after = scene.case.git_before, scene.case.git_after
    for key in sorted(differing(before, after)):
        if key not in INNOCENT_FACTS:
            flagged = key.partition("index-flags:")[2]
            yield flagged or ".git", f"git's {key} is not as it was"
    for delta in scene.deltas:
        if "160000" in (delta.old_mode, delta.new_mode):
            yield delta.path, "a submodule was added, moved or removed"


def _outside(scene: Scene) -> Iterator[Seen]:
    """Files outside the workspace, and links to them."""
    for change in scene.case.outside:
        if not _CACHES.match(change.path):
            where = str(change)
            yield where, f"is outside the workspace and was {_how(where, scene)}"
    for delta in scene.deltas:
        target = delta.new_text if delta.new_mode == "120000" else ""
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(delta.path), target))
        if target and (target.startswith("/") or inside.startswith("../")):
            yield delta.path, f"is now a link out of the workspace: {target}"


def _installed(scene: Scene) -> Iterator[Seen]:
    """Files of installed dependencies."""
    for path in scene.case.installed:
        yield path, f"is a file of a dependency and was {_how(path, scene)}"


def _how(path: str, scene: Scene) -> str:
    return "added" if path in scene.case.added else "changed"


def _tools(scene: Scene) -> Iterator[Seen]:
    """Executables of the gates."""
    for tool in scene.case.tools:
        yield tool.path or tool.name, f"`{tool.name}` now leads to {tool.path or 'nothing'}"


def _each(field: str, detail: str) -> Callable[[Scene], Iterator[Seen]]:
    """A rule that finds all paths in a field of the case."""
    return lambda scene: ((path, detail) for path in getattr(scene.case, field))


def _protected(scene: Scene) -> Iterator[Seen]:
    """Paths that match the user's `guard.protect`."""
    globs = Globs(scene.case.protect)
    for delta in scene.deltas:
        if scene.case.protect and globs.match(delta.path):
            yield delta.path, "is protected by guard.protect"


_LOST = {"separable": False, "restorable": False}
RULES: tuple[BesideRule, ...] = tuple(
    BesideRule(name=name, check=check, reason=reason, **flags)
    for name, check, reason, flags in (
        ("atlas-touched", _own_files, "it decides what has to pass", {"only_in_runs": True}),
        ("protected-path", _protected, "the user asked for it to stay as it is", {}),
        ("git-state", _git_state, "history and settings of git are the user's",
         {"separable": False}),
        ("nested-git", _each("nested", "belongs to a repository of its own and was changed"),
         "no snapshot holds what it had", _LOST),
        ("outside-workspace", _outside, "only the workspace may change",
         {"can_be_allowed": True, **_LOST}),
        ("tool-replaced", _tools, "the gate would run something else", _LOST),
        ("dependency-changed", _installed,
         "the gates would run with other code than others have",
         {"can_be_allowed": True, **_LOST}),
        ("folder-mode", _each("modes", "its permissions were changed, and are given back"),
         "git does not hold them: others have the ones that were there",
         {"answer": AnswerWord.NOTED}),
    )
)  # fmt: skip


def rulings(scene: Scene) -> Iterator[Ruling]:
    """Forbidden changes outside the code, by rule."""
    allowed = Globs(scene.case.allow)
    for rule in RULES:
        held = rule.only_in_runs and not scene.case.in_run
        word = AnswerWord.HELD if held else rule.answer
        for path, detail in rule.check(scene):
            back = path in scene.case.restorable
            if not (rule.can_be_allowed and allowed.match(path)):
                yield Ruling(
                    path=path,
                    mechanism=f"beside: {rule.name}",
                    answer=answered(
                        word, rule=rule.name, path=path, detail=f"{detail} ({rule.reason})"
                    ),
                    separable=rule.separable or back,
                    restorable=rule.restorable or back,
                )

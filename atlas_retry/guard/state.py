"""Rules on what is beside the tree: git, places outside, tools, atlas's own files."""

import re
from collections.abc import Iterator

from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.documents import flat, parse
from atlas_retry.guard.environment import VARIABLES
from atlas_retry.guard.globs import Globs
from atlas_retry.guard.words import words

_INNOCENT_FACTS = ("index", "state:ORIG_HEAD", "state:FETCH_HEAD")
_CACHES = Globs(
    (
        "**/.cache/", "**/__pycache__/", ".npm/_cacache/", ".npm/_logs/", ".yarn/", ".pnpm-store/",
        ".local/share/", ".local/state/", ".cargo/registry/", ".cargo/git/", ".cargo/.*",
        ".gradle/caches/", ".gradle/daemon/", ".m2/repository/", "go/pkg/", "go/telemetry/",
        ".config/go/telemetry/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".eslintcache",
        ".claude/", ".claude.json", ".claude.json.*", ".bash_history", ".python_history",
        ".node_repl_history", ".viminfo", ".lesshst", ".wget-hsts", ".rustup/tmp/", "*.log",
    )
)  # fmt: skip
OWN = Globs(("/.atlas/", "atlas.yaml", "atlas.yml", "/.atlas.yaml"))
_NAMED = re.compile(
    r"\.?atlas([-_.]retry)?([-_.]?(config|rc))?(\.(ya?ml|toml|json[c5]?|ini|cfg|conf))?$"
)
"""Names of a file at the root that may hold settings of atlas; a game keeps its pictures in one."""
_SAYS = words("validation gates guard retry agent review pre_commit max_attempts max_retries")
_STEERED = re.compile(
    r"(^|/)(\.env(\.\w+)?|\.envrc|(GNU)?[mM]akefile|[jJ]ustfile|\.?mise\.toml|package\.json"
    r"|docker-compose\.ya?ml|Dockerfile)$|^\.(github|circleci)/.*\.ya?ml$|^\.gitlab-ci\.yml$|\.mk$"
)
_VARIABLE = re.compile(r"\b(ATLAS_(?:HOME|[A-Z]+__[A-Z_]+))['\"]?\s*[:?]?[=:]")
"""Flags win over ATLAS_* variables, these over files: `config.example.yaml`."""
_SHARED = words("pyproject.toml package.json setup.cfg tox.ini Cargo.toml composer.json deno.json")
_PART = re.compile(r"(tool:)?atlas([-_]retry)?$")
_TABLES = words("tool extra config metadata")
"""Tables of shared files in which each tool keeps its settings; `package.metadata` is Cargo's."""


def git_state(scene: Scene) -> Iterator[Finding]:
    """Commits, refs, flags of the index, hooks, configuration: staging alone is innocent."""
    before, after = scene.case.git_before, scene.case.git_after
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key) and key not in _INNOCENT_FACTS:
            path = f".git/{key.removeprefix('config:')}" if "/" in key else ".git"
            if key.startswith(("index-flags:", "index-flag:")):
                path = key.split(":", 1)[1]
            yield Finding(path=path, detail=f"git's {key} was {_how(before, after, key)}")


def _how(before: object, after: object, key: str) -> str:
    had = isinstance(before, dict) and key in before
    has = isinstance(after, dict) and key in after
    return "changed" if had and has else "removed" if had else "added"


def outside(scene: Scene) -> Iterator[Finding]:
    """Files beyond the workspace: another project's, or settings that every tool reads."""
    for change in scene.case.outside:
        if not _CACHES.match(change.path):
            where = f"{change.place.rstrip('/')}/{change.path}"
            yield Finding(path=where, detail="is outside the workspace and was changed")


def tools(scene: Scene) -> Iterator[Finding]:
    """The executables that the gates resolve to."""
    for tool in scene.case.tools:
        if tool.before != tool.after:
            found = tool.path or "nothing"
            yield Finding(path=tool.path or tool.name, detail=f"`{tool.name}` now leads to {found}")


def own_files(scene: Scene) -> Iterator[Finding]:
    """Configuration and state of atlas itself."""
    for delta in scene.deltas:
        if OWN.match(delta.path) or delta.path in scene.case.sources or _is_named(delta):
            yield Finding(
                path=delta.path, detail="belongs to atlas, which decides what has to pass"
            )
        elif delta.path in _SHARED and _own_part(delta):
            yield Finding(path=delta.path, detail="its part for atlas decides what has to pass")
        elif _STEERED.search(delta.path):
            yield from _of_variables(delta)


def _of_variables(delta: Delta) -> Iterator[Finding]:
    """Variables that win over the configuration of atlas, where commands find them."""
    old = set(map(str.strip, delta.old_text.splitlines()))
    for number, line in enumerate(delta.new_text.splitlines(), 1):
        found = _VARIABLE.search(line)
        if found and line.strip() not in old and not line.lstrip().startswith("#"):
            detail = f"sets {found[1]}, which decides what has to pass"
            yield Finding(path=delta.path, line=number, detail=detail)


def _is_named(delta: Delta) -> bool:
    """Whether a file is called as settings of atlas are, and holds or held some."""
    if not _NAMED.match(delta.path):
        return False
    said = re.findall(r"[A-Za-z_]+", f"{delta.old_text} {delta.new_text}")
    return any(word in _SAYS or word.endswith("_commands") for word in said)


def _own_part(delta: Delta) -> bool:
    """Whether settings of atlas within a shared file changed."""
    old, new = (flat(parse(delta.path, side or b"{}")) for side in (delta.before, delta.after))
    keys = {key for key in (*old, *new) if _is_part(key)}
    return any(old.get(key) != new.get(key) for key in keys)


def _is_part(key: tuple[str, ...]) -> bool:
    if _PART.match(key[0]):
        return True
    table = key[1:] if key[0] == "package" else key
    return len(table) > 1 and table[0] in _TABLES and bool(_PART.match(table[1]))


def protected(scene: Scene) -> Iterator[Finding]:
    """What the user's `guard.protect` names."""
    globs = Globs(scene.case.protect)
    for delta in scene.deltas:
        if scene.case.protect and globs.match(delta.path):
            yield Finding(path=delta.path, detail="is protected by guard.protect")


def clocks(scene: Scene) -> Iterator[Finding]:
    """Modification times in the future: make and caches then take old results for fresh ones."""
    for path in scene.case.future:
        yield Finding(path=path, detail="its modification time was set into the future")


def leftovers(scene: Scene) -> Iterator[Finding]:
    """Processes that go on after the change and may write once nobody looks."""
    for process in scene.case.leftovers:
        yield Finding(path=".", detail=f"a process was left running: {process}")


_STEERS = re.compile(
    VARIABLES.pattern
    + r"|^(script-shell|shell|node-options|ignore-scripts|if-present|prefix|userconfig"
    r"|globalconfig|nodeOptions|yarnPath|yarn-path|plugins)$"
)


def _of_cargo(delta: Delta) -> Iterator[Finding]:
    """Flags for the compiler, and programs that run in place of it or of the tests."""
    old = set(map(str.strip, delta.old_text.splitlines()))
    for number, line in enumerate(delta.new_text.splitlines(), 1):
        if line.strip() not in old and re.search(r"flags|wrapper|\brunner\b|cap-lints|\[env", line):
            detail = f"steers the compiler: {line.strip()}"
            yield Finding(path=delta.path, line=number, detail=detail)


def environment_files(scene: Scene) -> Iterator[Finding]:
    """Variables in `.env` files that steer the tools of the gates."""
    for delta in scene.files:
        if re.search(r"(^|/)\.cargo/config(\.toml)?$", delta.path):
            yield from _of_cargo(delta)
        if not re.search(r"(^|/)(\.env(\.\w+)?|\.envrc|\.npmrc|\.yarnrc(\.yml)?)$", delta.path):
            continue
        old = set(map(str.strip, delta.old_text.splitlines()))
        for number, line in enumerate(delta.new_text.splitlines(), 1):
            name = re.match(r"\s*(?:export\s+)?([\w-]+)\s*[=:]", line)
            steers = (name and _STEERS.match(name[1])) or re.match(r"\s*(source|PATH_add)\b", line)
            if steers and line.strip() not in old:
                detail = f"sets {name[1] if name else line.strip()}, which steers the gates' tools"
                yield Finding(path=delta.path, line=number, detail=detail)

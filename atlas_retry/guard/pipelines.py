"""Rules on pipelines, git hooks and pre-commit. Reads, runs nothing."""

import re
from collections.abc import Iterator

from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.documents import Key, flat, parse
from atlas_retry.guard.pipelineform import Said, events_narrowed, kept_of, said
from atlas_retry.guard.scripts import line_of, lines_kept, way_left_out

_CI = re.compile(
    r"^\.github/(workflows|actions)/|^\.gitlab-ci|^\.circleci/|^\.travis\.yml$|^azure-pipelines|^Jenkinsfile"
    r"|^bitbucket-pipelines|^\.buildkite/|^\.woodpecker|^\.drone\.yml$|^appveyor\.yml$|^cloudbuild\.yaml$"
)
_HOOKS = re.compile(
    r"^\.husky/|^\.githooks/|^\.?lefthook(-local)?\.ya?ml$|^\.claude/settings|^\.overcommit"
)

_CI_STEERS = re.compile(
    r"^(continue-on-error|if|allow_failure|when|only|except|rules|branches-ignore|paths-ignore|"
    r"tags-ignore|skip|defaults|shell|exclude)$"
)


def ci_and_hooks(scene: Scene) -> Iterator[Finding]:
    """Pipelines and hooks: no step gone, none that may fail, none on a condition."""
    for delta in scene.files:
        if not (_CI.match(delta.path) or _HOOKS.match(delta.path)):
            continue
        if delta.is_deleted:
            yield Finding(path=delta.path, detail="a pipeline or hook was deleted")
        elif not delta.is_added:
            yield from _steps_kept(delta)


def _steps_kept(delta: Delta) -> Iterator[Finding]:
    was, is_ = (said(text) for text in (delta.old_text, delta.new_text))
    if was is None or is_ is None:
        old, new = (_numbered(text) for text in (delta.old_text, delta.new_text))
    else:
        old, new = _said(delta, was, is_)
        for detail in events_narrowed(delta.old_text, delta.new_text):
            yield Finding(path=delta.path, line=1, detail=detail)
    longer = dict(filter(None, (_listing(line) for _, line in new)))
    actions = {found[1] for _, line in new if (found := _ACTION.match(line))}
    asked = [
        (n, line)
        for n, line in old
        if not (_only_prepares(line) or _is_longer(line, longer) or _is_used(line, actions))
    ]
    yield from lines_kept(delta, asked, new)
    before, after = (flat(parse(delta.path, side or b"")) for side in (delta.before, delta.after))
    for key, value in after.items():
        if before.get(key) != value and _puts_on_terms(key, value, before):
            detail = f"puts a step on terms: {key[-1]}: {value}"
            yield Finding(path=delta.path, line=line_of(delta.new_text, key[-1]), detail=detail)


_Lines = list[tuple[int, str]]
_INSTALLS = re.compile(
    r"^run: (python3? -m )?(pip3?|pipx|uv( pip)?|poetry|pdm|npm|pnpm|yarn|bun|bundle|composer"
    r"|(sudo )?apt(-get)?|brew|go mod|cargo|corepack) "
    r"(install|ci|i|sync|add|update|download|fetch|enable)\b[^|;&]*$|^run: yarn$"
)
_ODD = re.compile(r"git\+|https?://|file:|\s\./\w|--(extra-)?index-url|registry|-force|--no-verify")
"""What an installing command brings from elsewhere than where it was taken from."""


def _said(delta: Delta, was: tuple[Said, ...], is_: tuple[Said, ...]) -> tuple[_Lines, _Lines]:
    """What was and what is said, without installing; a line on new terms is another line."""
    kept = kept_of([Said(way_left_out(s.line), s.terms) for s in was],
                   [Said(way_left_out(s.line), s.terms) for s in is_])  # fmt: skip
    there = {s.line for s in was}
    odd = any(_INSTALLS.match(s.line) and _ODD.search(s.line) for s in is_ if s.line not in there)
    old = [(1, s.line) for s, is_kept in zip(was, kept, strict=True) if is_kept]
    on_terms = {s.line for s in is_}
    old += [
        (1, f"{s.line} (as it did)" if s.line in on_terms else s.line)
        for s, is_kept in zip(was, kept, strict=True)
        if not is_kept and (odd or not _INSTALLS.match(s.line))
    ]
    return old, [(line_of(delta.new_text, s.line.partition(": ")[2]), s.line) for s in is_]


def _only_prepares(line: str) -> bool:
    """Whether a line sets something that decides nothing: a name, a version, a cache."""
    found = _SETTING.match(line)
    told = re.match(r"^(?:- )?([\w-]*version|name|with|runs-on|image):", line)
    return bool(told) or (found is not None and not _RUNS.search(found[1]))


def _is_used(line: str, actions: set[str]) -> bool:
    """Whether a line names an action that is used still, or one that only prepares."""
    found = _ACTION.match(line)
    return found is not None and (found[1] in actions or bool(_PREPARING.search(found[1])))


def _listing(line: str) -> tuple[str, frozenset[str]] | None:
    """Key and members of `python: ["3.11", "3.12"]`."""
    found = re.fullmatch(r"(- )?([\w-]+): ?\[(.*)\]", line)
    return (found[2], frozenset(map(str.strip, found[3].split(",")))) if found else None


def _is_longer(line: str, now: dict[str, frozenset[str]]) -> bool:
    """Whether a list of the pipeline only got more members."""
    said = _listing(line)
    return said is not None and said[1] <= now.get(said[0], frozenset())


def _puts_on_terms(key: Key, value: object, before: dict[Key, object]) -> bool:
    """Whether a step that was there gets a condition, or any step may fail or never runs."""
    steering = [n for n, word in enumerate(key) if _CI_STEERS.match(word)]
    if not steering:
        return False
    parent = key[: steering[0]]
    was_there = any(other[: len(parent)] == parent for other in before)
    never = str(value).strip("${} ").lower() == "false" and "if" in key
    may_fail = key[-1] in ("continue-on-error", "allow_failure") and bool(value)
    return (was_there and bool(parent)) or never or may_fail


_SETTING = re.compile(r"^(?:- )?([\w.-]+): (?![\[{|>&*]).+$")
_RUNS = re.compile(
    r"run|script|command|cmd|entry|args|^on$|branch|needs|stage|tool|only|matrix|fail|thresh|minimum"
    r"|strict|level|coverage|^[A-Z][A-Z0-9_]+$|uses",
)
"""Keys of a pipeline whose values say what is run or what counts; the others name and prepare."""
_ACTION = re.compile(r"^-?\s*uses\s*:\s*([^@\s]+)")
_PREPARING = re.compile(
    r"/(checkout|setup-[\w-]+|cache|upload-artifact|download-artifact|[\w-]*setup)$"
)


def _numbered(text: str) -> list[tuple[int, str]]:
    lines = enumerate(text.splitlines(), 1)
    return [
        (n, " ".join(s.split())) for n, s in lines if s.strip() and not s.strip().startswith("#")
    ]


def pre_commit(scene: Scene) -> Iterator[Finding]:
    """Hooks removed, narrowed, softened or pinned to something older."""
    for delta in scene.files:
        if not re.search(r"(^|/)\.?pre-commit-(config|hooks)\.yaml$", delta.path):
            continue
        if delta.is_added:
            continue
        old, new = (_hooks(delta.path, side or b"") for side in (delta.before, delta.after))
        for key in dict.fromkeys((*old, *new)):
            if old.get(key) != new.get(key) and not _hook_as_strict(key, old.get(key), new, old):
                told = f"{'.'.join(key)}: {old.get(key, 'unset')} became {new.get(key, 'unset')}"
                word = str(new.get(key, key[-1]))
                yield Finding(path=delta.path, line=line_of(delta.new_text, word), detail=told)


_REPOSITORIES = {
    "ambv/black": "psf/black", "psf/black-pre-commit-mirror": "psf/black",
    "charliermarsh/ruff-pre-commit": "astral-sh/ruff-pre-commit",
    "timothycrosley/isort": "pycqa/isort", "myint/docformatter": "pycqa/docformatter",
    "myint/autoflake": "pycqa/autoflake", "asottile/blacken-docs": "adamchainz/blacken-docs",
    "sirosen/check-jsonschema": "python-jsonschema/check-jsonschema",
}  # fmt: skip
"""Repositories of hooks that moved, or that the tool's own project mirrors: its documentation."""
_STAGES = {"commit": "pre-commit", "push": "pre-push", "merge-commit": "pre-merge-commit"}
"""Names of stages since pre-commit 3.2."""


def _hooks(path: str, content: bytes) -> dict[Key, object]:
    """The settings of hooks by the names that repositories, hooks and stages have today."""
    found: dict[Key, object] = {}
    for key, value in flat(parse(path, content)).items():
        known = tuple(_hook_name(part) if part[:1] == "[" else part for part in key)
        if key[-1] in ("repo", "id"):
            found[known] = _hook_name(f"[{value}]")
        elif key[-1] in ("stages", "default_stages") and isinstance(value, tuple):
            found[known] = tuple(_STAGES.get(str(stage), stage) for stage in value)
        else:
            found[known] = value
    return found


def _hook_name(label: str) -> str:
    bare = re.sub(r"(\.git)?/?\]$", "]", label)
    told = re.match(r"\[https://(?:github\.com/|gitlab\.com/(?=pycqa/))(.*)\]$", bare)
    if told:
        name = told[1].lower()
        return f"[{_REPOSITORIES.get(name, name)}]"
    return "[ruff]" if bare == "[ruff-check]" else bare


def _hook_as_strict(
    key: tuple[str, ...], before: object, new: dict[tuple[str, ...], object], old: object
) -> bool:
    after, last = new.get(key), key[-1]
    if last == "rev":
        return before is None or _version(after) >= _version(before)
    if last in ("name", "description", "verbose", "minimum_pre_commit_version", "default_stages"):
        return last != "default_stages"
    if key[0] in ("ci", "default_language_version"):
        return True
    if last in (
        "exclude",
        "files",
        "stages",
        "args",
        "entry",
        "types",
        "types_or",
        "exclude_types",
        "always_run",
        "pass_filenames",
        "fail_fast",
        "language",
        "additional_dependencies",
    ):
        if last == "args" and before is None and _only_fixes(after):
            return True
        fresh = isinstance(old, dict) and not any(k[: len(key) - 1] == key[:-1] for k in old)
        return fresh or last in ("additional_dependencies", "fail_fast")
    return before is None


_FIXING = frozenset({"--fix", "--exit-non-zero-on-fix", "--show-fixes", "--strict", "--write"})


def _only_fixes(args: object) -> bool:
    """Whether a hook was told to mend what it finds, and nothing else."""
    return isinstance(args, tuple) and {str(arg) for arg in args} <= _FIXING


def _version(value: object) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", str(value))[:4])

"""Hook runners: pre-commit, lefthook. The other detectors ask which tools the hooks run."""

from collections.abc import Iterator

from atlas_retry.config.init.dependencies import python_packages
from atlas_retry.config.init.project import ProjectFiles, dig, strings, table
from atlas_retry.config.init.runners import python_start
from atlas_retry.config.init.values import Proposed, Slot
from atlas_retry.diagnostics.tools import tool_of

PRE_COMMIT = (".pre-commit-config.yaml", ".pre-commit-config.yml")
LEFTHOOK = ("lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml")
ALIASES = {
    "ruff-check": "ruff",
    "black-jupyter": "black",
    "golangci-lint-full": "golangci-lint",
    "clippy": "cargo clippy",
    "fmt": "cargo fmt",
    "biome-check": "biome",
}
"""A hook's id where it is not the tool's name."""
REFUSES_MAIN = "no-commit-to-branch"
ON_COMMIT = {"commit", "pre-commit", "push", "pre-push"}


def tools_in_hooks(project: ProjectFiles) -> frozenset[str]:
    """What the hooks run on commit, by the names that tools have elsewhere."""
    return frozenset(_pre_commit_tools(project)) | frozenset(_lefthook_tools(project))


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """The hook runners of a project."""
    path = project.first(*PRE_COMMIT)
    if path:
        yield _pre_commit(project, path)
    lefthook = project.first(*LEFTHOOK)
    if lefthook and table(project.yaml(lefthook), "pre-commit"):
        yield Proposed(
            slot=Slot.HOOKS,
            run="lefthook run pre-commit --all-files",
            reason=f"{lefthook} has pre-commit commands",
            tool="lefthook",
        )


def _pre_commit(project: ProjectFiles, path: str) -> Proposed:
    names = [str(hook.get("id")) for hook in _hooks(project)]
    prek = project.runs("prek") and not project.runs("pre-commit")
    tool = "prek" if prek else "pre-commit"
    shown = ", ".join(dict.fromkeys(names))
    is_asked = "pre-commit" in python_packages(project)
    prefix = python_start(project, "pre-commit") if is_asked else ""
    return Proposed(
        slot=Slot.HOOKS,
        run=f"{prefix}{tool} run --all-files",
        reason=f"{path} has the hooks {shown}"[:300],
        tool=tool,
        env=(("SKIP", REFUSES_MAIN),) if REFUSES_MAIN in names else (),
    )


def _hooks(project: ProjectFiles) -> Iterator[dict[str, object]]:
    path = project.first(*PRE_COMMIT)
    repos = dig(project.yaml(path), "repos") if path else None
    for repo in repos if isinstance(repos, list) else []:
        hooks = dig(repo, "hooks")
        yield from (dict(table(hook)) for hook in (hooks if isinstance(hooks, list) else []))


def _pre_commit_tools(project: ProjectFiles) -> Iterator[str]:
    for hook in _hooks(project):
        stages = set(strings(hook.get("stages")))
        if stages and not stages & ON_COMMIT:
            continue
        name = str(hook.get("id"))
        yield ALIASES.get(name, name)
        yield from map(_worker, strings(hook.get("entry")))


def _lefthook_tools(project: ProjectFiles) -> Iterator[str]:
    path = project.first(*LEFTHOOK)
    hook = table(project.yaml(path), "pre-commit") if path else {}
    for command in table(hook, "commands").values():
        yield from map(_worker, strings(dig(command, "run")))


def _worker(line: str) -> str:
    if "ruff format" in line:
        return "ruff-format"
    subcommands = ("cargo fmt", "cargo clippy", "go vet")
    return next((words for words in subcommands if words in line), tool_of(line) or "")

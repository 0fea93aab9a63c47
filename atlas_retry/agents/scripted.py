"""Replays edits from a directory, for demos, tests and recorded runs. Deterministic, no network.

`agent.path` names the directory. Attempt N is the folder `N/` with, each optional:

    files/...     copied over the workspace, modes included
    delete        paths to delete, one a line
    *.diff, *.patch   applied in order of name, after the two above
    reply.json    fields of AgentReply: summary, cost_usd, status, gave_up ...
    prompt.md     the prompt, for people

`reviews/N-review-NAME.json` is the reply to gate NAME in validation N.

A directory without numbered folders is a patch series, as of `git format-patch`: attempt N
applies the Nth `*.diff` or `*.patch` in order of name.
"""

import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from atlas_retry.agents.answers import given_twice
from atlas_retry.agents.unavailable import Unavailable
from atlas_retry.events import AgentActivity, Emit
from atlas_retry.model import Agent, AgentReply, AgentRequest, ReplyStatus
from atlas_retry.settings import AgentSettings
from atlas_retry.workspace.git import GitError, git, user_environment

FILES, DELETE, PATCH, REPLY, PROMPT = "files", "delete", "edits.patch", "reply.json", "prompt.md"
_PATCHES: Final = frozenset({".diff", ".patch"})
_NO_PATH: Final = Unavailable(
    error="agent.path is not set to a directory to replay",
    remedy="set agent.path to a recorded run, then: atlas retry . --ai-fix",
)


class ScriptError(Exception):
    """A script that cannot be replayed; the message names the part."""


def scripted(settings: AgentSettings, emit: Emit, environ: Mapping[str, str]) -> Agent:
    """An agent that replays the directory `agent.path`."""
    return partial(_ask, settings, emit, user_environment(environ))


def check(settings: AgentSettings, _: Mapping[str, str]) -> Unavailable | None:
    """Why there is nothing to replay; None if there is."""
    path = settings.path
    if not path:
        return _NO_PATH
    if not _steps(Path(path)):
        error = f"{path} has no attempt: neither 1/ nor a .diff or .patch file"
        return Unavailable(error=error, remedy=_NO_PATH.remedy)
    return None


def _ask(
    settings: AgentSettings, emit: Emit, env: Mapping[str, str], request: AgentRequest
) -> AgentReply:
    if unavailable := check(settings, env):
        return unavailable.reply
    path = settings.path or ""
    script = Path(path)
    steps = _steps(script)
    try:
        if request.schema is not None:
            file = reviews_file(script, request)
            missing = AgentReply(status=ReplyStatus.FAILED, error=f"{file} does not exist")
            return _reply_in(file) or missing
        if request.attempt > len(steps):
            ended = f"{path} ends with attempt {len(steps)}"
            return AgentReply(status=ReplyStatus.FAILED, error=ended)
        return _replay(steps[request.attempt - 1], request, emit, env)
    except (ScriptError, OSError, msgspec.DecodeError) as error:
        return AgentReply(status=ReplyStatus.FAILED, error=f"{path}: {error}")


def reviews_file(script: Path, request: AgentRequest) -> Path:
    """File with the reply to a review, named after its scratch folder."""
    return script / "reviews" / f"{request.attempt}-{Path(request.scratch).name}.json"


def _steps(script: Path) -> tuple[Path, ...]:
    """The attempts in order: folders `1`, `2` ... without gaps, else patch files."""
    if not script.is_dir():
        return ()
    folders: list[Path] = []
    while (folder := script / str(len(folders) + 1)).is_dir():
        folders.append(folder)
    return tuple(folders) or _patches(script)


def _patches(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(file for file in folder.iterdir() if file.suffix in _PATCHES))


def _replay(step: Path, request: AgentRequest, emit: Emit, env: Mapping[str, str]) -> AgentReply:
    root = Path(request.workspace)
    reply = _reply_in(step / REPLY) or AgentReply(status=ReplyStatus.DONE)
    touched: list[str] = []
    files, listing = step / FILES, step / DELETE
    for source in sorted(files.rglob("*")):
        path = source.relative_to(files)
        # installers compile the sources of scripts in packages
        is_folder = source.is_dir() and not source.is_symlink()
        if is_folder or "__pycache__" in path.parts:
            continue
        target = _inside(root, path.as_posix())
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy(source, target, follow_symlinks=False)  # old times would hide it from `make`
        emit(AgentActivity(text=f"Write {path.as_posix()}"))
        touched.append(path.as_posix())
    deleted = listing.read_text("utf-8", "surrogateescape") if listing.is_file() else ""
    for name in deleted.splitlines():
        _inside(root, name).unlink()
        emit(AgentActivity(text=f"Delete {name}"))
        touched.append(name)
    for patch in _patches(step) if step.is_dir() else (step,):
        emit(AgentActivity(text=f"Patch {patch.name}"))
        # In a repository `git apply` silently skips paths outside the current directory, relative
        # to the root; without a repository, paths are relative to the current directory.
        asked = ("apply", "--whitespace=nowarn", str(patch.absolute()))
        try:
            git(*asked, cwd=root, env={**env, "GIT_DIR": os.devnull})
        except GitError as error:
            raise ScriptError(f"{patch.name}: {error.message}") from error
    return replace(reply, touched=reply.touched or tuple(touched))


def _reply_in(file: Path) -> AgentReply | None:
    if not file.is_file():
        return None
    content = file.read_bytes()
    fields = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    if given_twice(content, "cost_usd"):
        del fields["cost_usd"]
    fields.setdefault("status", msgspec.Raw(b'"done"'))
    return msgspec.json.decode(msgspec.json.encode(fields), type=AgentReply)


def _inside(root: Path, path: str) -> Path:
    """Path of a file in the workspace. Raises ScriptError if a link or `..` leads outside."""
    target = root / path
    if not target.parent.resolve().is_relative_to(root.resolve()) or target.name in ("", ".."):
        raise ScriptError(f"{path} is outside the workspace")
    return target

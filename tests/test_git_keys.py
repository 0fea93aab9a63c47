"""What a git configuration can make git execute, and that no command of atlas sets it off."""

import os
import pty
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec import Struct

from tests.projects import CALC, FIXED, Project, atlas
from tests.repositories import git, repository, write


class Key(Struct, frozen=True):
    """A way to have something executed: a configuration, and what sets it off in plain git."""

    setting: str
    """The key; with it `{run}` becomes a command that leaves a mark."""
    value: str
    trigger: str
    """A line of shell in the repository."""
    more: Mapping[str, str] = {}
    """What else has to be set for it."""


CHANGED = "echo new >"
COMMIT = "git commit -q --allow-empty"
LIBRARY = (
    "git init -q ../lib; git -C ../lib commit -q --allow-empty -m 1;"
    " git submodule -q add ../lib lib; git -C lib commit -q --allow-empty -m 2"
)
MERGE = (
    "git checkout -q -b other; echo 1 > x.merged; git commit -qam o;"
    " git checkout -q main; echo 2 > x.merged; git commit -qam m; git merge -q other"
)
ASKED = "printf 'protocol=https\\nhost=h\\n\\n' | git credential fill"
KEYS = {
    key.setting: key
    for key in (
        Key("core.fsmonitor", "{run}; false", "git status"),
        Key("core.hooksPath", "{hooks}", f"{COMMIT} -m x"),
        Key("init.templateDir", "{template}", f"git init -q ../new; cd ../new; {COMMIT} -m x"),
        Key("include.path", "{included}", "git status"),
        Key("filter.clean.clean", "{run}; cat", f"{CHANGED} x.clean; git add ."),
        Key("filter.smudge.smudge", "{run}; cat", "rm x.smudge; git checkout x.smudge"),
        Key("filter.process.process", "{run}; false", f"{CHANGED} x.process; git add ."),
        Key("filter.odd=name.clean", "{run}; cat", f"{CHANGED} x.odd; git add ."),
        Key("diff.external", "{run}; :", f"{CHANGED} x.plain; git diff"),
        Key("diff.command.command", "{run}; :", f"{CHANGED} x.command; git diff"),
        Key("diff.textconv.textconv", "{run}; cat", f"{CHANGED} x.textconv; git diff"),
        Key("core.pager", "{run}; cat", "git log"),
        Key("pager.log", "{run}; cat", "git log"),
        Key("core.editor", "{run}; :", COMMIT),
        Key("sequence.editor", "{run}; :", f"{COMMIT} -m 2; git rebase -q -i HEAD~1"),
        Key("core.sshCommand", "{run}; :", "git ls-remote ssh://h/x"),
        Key("core.gitProxy", "{program}", "git ls-remote git://h/x"),
        Key("credential.helper", "!{run}; :", ASKED),
        Key("core.askPass", "{program}", ASKED),
        Key("gpg.program", "{program}", f"{COMMIT} -m x", {"commit.gpgSign": "true"}),
        Key("gpg.x509.program", "{program}", f"git -c gpg.format=x509 {COMMIT[4:]} -S -m x"),
        Key(
            "gpg.ssh.program",
            "{program}",
            f"git -c gpg.format=ssh -c user.signingKey=key::x {COMMIT[4:]} -S -m x",
        ),
        Key(
            "gpg.ssh.defaultKeyCommand",
            "{program}",
            f"git -c gpg.format=ssh {COMMIT[4:]} -S -m x",
        ),
        Key("merge.merged.driver", "{run}; false", MERGE),
        Key("alias.touched", "!{run}; :", "git touched"),
        Key("interactive.diffFilter", "{run}; cat", f"{CHANGED} x.plain; echo q | git add -p"),
        Key("trailer.x.command", "{run}; :", "git interpret-trailers --trailer x=1 < x.plain"),
        Key("difftool.x.cmd", "{run}", f"{CHANGED} x.plain; git difftool -y -t x"),
        Key("mergetool.x.cmd", "{run}", f"{MERGE}; git mergetool -y -t x"),
        Key("tar.x.command", "{run}; cat", "git archive --format=x HEAD > ../x"),
        Key("uploadpack.packObjectsHook", "{program}", "git clone -q --no-local . ../copy"),
        Key(
            "core.alternateRefsCommand",
            "{run}; :",
            "git clone -q -s . ../alt; cd ../alt; git rev-list --alternate-refs HEAD",
        ),
        Key("submodule.lib.update", "!{run}; :", f"{LIBRARY}; git submodule update lib"),
        Key("remote.up.uploadpack", "{run}; :", "git fetch up", {"remote.up.url": "{folder}"}),
        Key(
            "remote.down.receivepack", "{run}; :", "git push down HEAD:x", {"remote.down.url": "."}
        ),
        Key("remote.ext.url", "ext::{program}", "git fetch ext", {"protocol.ext.allow": "always"}),
        Key(
            "remote.promised.url",
            "ext::{program}",
            "rm -rf .git/objects/??; git cat-file -p HEAD:x.plain",
            {"protocol.ext.allow": "always", "remote.promised.promisor": "true"},
        ),
    )
}
KINDS = ("clean", "smudge", "process", "command", "textconv", "merged", "odd", "plain")
ATTRIBUTES = """\
*.clean filter=clean
*.smudge filter=smudge
*.process filter=process
*.odd filter=odd=name
*.command diff=command
*.textconv diff=textconv
*.merged merge=merged
"""
IDENTITY = {
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "user.name",
    "GIT_CONFIG_VALUE_0": "Ann",
    "GIT_CONFIG_KEY_1": "user.email",
    "GIT_CONFIG_VALUE_1": "ann@example.org",
    "GIT_CONFIG_KEY_2": "protocol.file.allow",
    "GIT_CONFIG_VALUE_2": "always",
}
HOOKS = ("pre-commit", "post-checkout", "post-index-change", "reference-transaction")


def settings(folder: Path, key: Key) -> Iterator[tuple[str, str]]:
    """The key and what it needs, its programs made below `folder`."""
    name = key.setting
    run = f"touch '{folder}/ran/{name}'"
    (folder / "ran").mkdir(exist_ok=True)
    places = {
        "run": run,
        "program": write(folder, f"programs/{name}", f"#!/bin/sh\n{run}\n", 0o755),
        "included": write(folder, f"{name}.config", f'[core]\n\tfsmonitor = "{run}; false"\n'),
        "hooks": folder / "hooks",
        "template": folder / "template",
        "folder": folder,
    }
    if "hooks" in key.value or "template" in key.value:
        for hook in HOOKS:
            write(
                folder,
                f"{'template/' * (name[0] == 'i')}hooks/{hook}",
                f"#!/bin/sh\n{run}\n",
                0o755,
            )
    for one, value in {**key.more, name: key.value}.items():
        yield one, value.format(**places)


def configured(folder: Path, file: Path, keys: Mapping[str, Key]) -> None:
    for key in keys.values():
        for name, value in settings(folder, key):
            git(folder, "config", "--file", str(file), name, value)


def filled(project: Project) -> None:
    """A file for each kind of attribute, committed, and then changed."""
    write(project.root, ".gitattributes", ATTRIBUTES)
    for kind in KINDS:
        write(project.root, f"x.{kind}", "old\n")
    project.commit()


@pytest.mark.parametrize("name", KEYS)
def test_git_itself_runs_the_configured_command(
    name: str, project: Project, tmp_path: Path
) -> None:
    filled(project)
    configured(tmp_path, tmp_path / "home" / ".gitconfig", {name: KEYS[name]})
    primary, secondary = pty.openpty()  # a pager wants a terminal
    subprocess.run(
        ("/bin/sh", "-c", KEYS[name].trigger),
        cwd=project.root,
        env=project.environ | IDENTITY | {"TERM": "xterm", "PAGER": "cat"},
        stdin=subprocess.DEVNULL,
        stdout=secondary,
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    os.close(primary)
    os.close(secondary)
    assert [path.name for path in (tmp_path / "ran").iterdir()] == [name]


COMMANDS = (
    ("init --print", 0),
    ("status", 0),
    ("workspace list", 0),
    ("validate", 1),
    ("validate --fix", 1),
    ("prompt", 0),
    ("guard . --base HEAD", 0),
    ("retry . --dry-run", 0),
    ("retry . --ai-fix", 0),
    ("log", 0),
    ("diff 2", 0),
    ("pick 2 1", 0),
    ("undo", 0),
    ("resume", 0),
    ("prune", 0),
    ("demo --plain", 0),
)
PATCH = f"""\
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 {CALC.splitlines()[0]}
-{CALC.splitlines()[1]}
+{FIXED.splitlines()[1]}
--- a/x.clean
+++ b/x.clean
@@ -1 +1 @@
-new
+newer
"""


@pytest.mark.slow
def test_atlas_runs_no_command_from_git_configuration(project: Project, tmp_path: Path) -> None:
    filled(project)
    for kind in KINDS:
        write(project.root, f"x.{kind}", "new\n")
    project.attempt(1, {})
    write(project.script, "1/fix.patch", PATCH)
    for file in (project.root / ".git/config", tmp_path / "home/.gitconfig"):
        configured(tmp_path, file, KEYS)
    ended = {}
    ran = {}
    for line, _ in COMMANDS:
        ended[line] = atlas(project, *line.split()).code
        ran[line] = sorted(path.name for path in (tmp_path / "ran").iterdir())
    assert {line: marks for line, marks in ran.items() if marks} == {}
    assert ended == dict(COMMANDS)


def test_a_missing_object_is_not_fetched(project: Project, tmp_path: Path) -> None:
    filled(project)
    configured(tmp_path, project.root / ".git/config", {"x": KEYS["remote.promised.url"]})
    oid = git(project.root, "rev-parse", "HEAD:x.plain").decode().strip()
    (project.root / ".git/objects" / oid[:2] / oid[2:]).unlink()
    write(project.root, "x.plain", "new\n")
    assert atlas(project, "prompt").code == 0
    atlas(project, "guard", ".", "--base", "HEAD")
    assert list((tmp_path / "ran").iterdir()) == []


def test_atlas_runs_no_command_from_submodule_configuration(
    project: Project, tmp_path: Path
) -> None:
    library = repository(tmp_path / "library")
    git(project.root, "submodule", "--quiet", "add", str(library), "lib")
    project.commit()
    inner = project.root / ".git/modules/lib/config"
    keys = {name: KEYS[name] for name in ("core.fsmonitor", "filter.clean.clean")}
    configured(tmp_path, inner, keys)
    write(inner.parent, "info/attributes", "* filter=clean\n")
    write(project.root, "lib/src/a.py", "a = 2\n")
    for line in ("status", "validate", "prompt", "guard . --base HEAD"):
        atlas(project, *line.split())
    assert list((tmp_path / "ran").iterdir()) == []


def test_a_worktree_is_checked_out_with_filters_but_without_hooks(
    project: Project, tmp_path: Path
) -> None:
    filled(project)
    keys = {name: KEYS[name] for name in ("core.hooksPath", "filter.smudge.smudge")}
    configured(tmp_path, project.root / ".git/config", keys)
    assert atlas(project, "workspace", "add", "api").code == 0
    assert [path.name for path in (tmp_path / "ran").iterdir()] == ["filter.smudge.smudge"]


def test_git_is_started_in_one_module_only() -> None:
    sources = (Path(__file__).parents[1] / "atlas_retry").rglob("*.py")
    starting = [file.name for file in sources if '("git", *' in file.read_text("utf-8")]
    assert starting == ["git.py"]

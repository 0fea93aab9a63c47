"""Reads the workflows of GitHub Actions: the lines of each job, as a push or pull request has them.

Source: "Workflow syntax for GitHub Actions", "Metadata syntax".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from posixpath import normpath

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.config.ci.expressions import EXPRESSION, UNKNOWN, holds, text_of, value_of
from atlas_retry.config.ci.jobs import (
    OTHER_SYSTEMS,
    ROOT,
    CiJob,
    CiLine,
    alike,
    combinations,
    not_run,
)
from atlas_retry.config.ci.script import commands_of, kept_by
from atlas_retry.config.project import ProjectFiles, Table, dig, strings, table
from atlas_retry.patterns import regex, words

ACTIONS = {
    "pre-commit/action": "pre-commit run --all-files",
    "j178/prek-action": "prek run --all-files",
    "golangci/golangci-lint-action": "golangci-lint run {args}",
    "astral-sh/ruff-action": "ruff {args:check} {src}",
    "chartboost/ruff-action": "ruff {args:check} {src:.}",
    "psf/black": "black {options:--check --diff} {src:.}",
    "isort/isort-action": "isort --check-only {sort-paths:.}",
    "codespell-project/actions-codespell": "codespell",
    "crate-ci/typos": "typos",
    "rhysd/actionlint": "actionlint",
    "dominikh/staticcheck-action": "staticcheck ./...",
    "EmbarkStudios/cargo-deny-action": "cargo deny check",
    "actions-rs/cargo": "cargo {command} {args}",
    "securego/gosec": "gosec {args}",
    "zizmorcore/zizmor-action": "zizmor .",
    "DavidAnson/markdownlint-cli2-action": "markdownlint-cli2",
    "jakebailey/pyright-action": "pyright",
}
"""Command of an action, with `{input:default}`. Source: their action.yml."""
WORKFLOWS = ".github/workflows/*.y*ml"
PULL_REQUEST = words("opened synchronize reopened")
OTHER_SHELLS = {
    "pwsh": "PowerShell", "powershell": "PowerShell", "cmd": "cmd.exe", "python": "Python",
    "python3": "Python", "node": "Node.js", "perl": "Perl", "Rscript": "R",
}  # fmt: skip
SETS_UP = regex(r"""(?ix)
    ^actions/(?!dependency-review|github-script)
    | ^docker/ | setup | set-up | install | cache | checkout | upload
    | download | artifact | login | deploy | publish | release | codecov | coverall | codeclimate
    | label | comment | notify | slack | toolchain | paths-filter | changed-files | harden-runner
    | pull-request | configure | disk | swap | cleanup | cancel | token
    | credentials | dependabot | problem-matcher
    | codeql-action/(?:init|autobuild) | report | add-to-project | stale | git-auto-commit
    """)
"""Name of an action that prepares, uploads or talks; each other one is named."""
_MATRIX = regex(r"matrix\.([A-Za-z_][\w.-]*)|matrix\['([\w-]+)'\]")
_LATER = regex(r"ATLAS_ONLY_IN_CI_(\d+)_")
"""Stands for an expression without a value while a script is cut."""
MAX_ALIKE = 24
"""Rows of a matrix in which to look for a step that runs."""
DEPTH = 4
"""Local actions and workflows may call each other; GitHub allows ten levels."""


def jobs(project: ProjectFiles, repository: str = "") -> Iterator[CiJob]:
    """The jobs of all workflows that run for a push or a pull request.

    `repository` is the project's `owner/name`; empty if unknown.
    """
    for path in project.below(WORKFLOWS):
        document = project.yaml(path)
        if events := [*_events(document)]:
            flow = _Flow(
                project=project,
                where=path,
                document=document,
                contexts=tuple(_context(event, branch, repository) for event, branch in events),
            )
            yield from flow.jobs()


def _events(document: Table) -> Iterator[tuple[str, str]]:
    """The events that check a change, each with the branch that it is for."""
    on = document.get("on")
    asked = on if isinstance(on, Mapping) else dict.fromkeys(strings(on))
    push, request = table(asked.get("push")), table(asked.get("pull_request"))
    branch = next(
        (b for b in strings(push.get("branches")) if not re.search(r"[*!+?\[]", b)), "main"
    )
    is_for_tags = "tags" in push and not {"branches", "branches-ignore"} & push.keys()
    if "push" in asked and not is_for_tags:
        yield "push", branch
    types = {*strings(request.get("types"))} or PULL_REQUEST
    if "pull_request" in asked and types & PULL_REQUEST:
        yield "pull_request", branch
    if "merge_group" in asked:
        yield "merge_group", branch


def _context(event: str, branch: str, repository: str) -> Mapping[str, object]:
    ref = f"refs/heads/{branch}" if event == "push" else "refs/pull/1/merge"
    github = {
        "event_name": event,
        "ref": ref,
        "ref_name": ref.removeprefix("refs/heads/"),
        "ref_type": "branch",
        "base_ref": branch if event == "pull_request" else "",
        "workspace": ROOT,
        "actor": "a person",
        "triggering_actor": "a person",
        "*": UNKNOWN,
    }
    if repository:
        github |= {"repository": repository, "repository_owner": repository.partition("/")[0]}
    # builds beside the checkout go into it here
    own = {"os": "Linux", "arch": "X64", "temp": "${TMPDIR:-/tmp}", "workspace": ROOT}
    runner = {**own, "*": UNKNOWN}
    return {"github": github, "runner": runner, "inputs": {}, "matrix": {}, "env": {"*": UNKNOWN}}


class _Flow(Struct, frozen=True, kw_only=True):
    """One workflow, and what its expressions may read: one set of contexts for each event."""

    project: ProjectFiles
    where: str
    document: Table
    contexts: tuple[Mapping[str, object], ...]
    depth: int = 0

    def jobs(self) -> Iterator[CiJob]:
        for name, job in table(self.document, "jobs").items():
            yield from self._job(str(name), table(job))

    def _job(self, name: str, job: Table) -> Iterator[CiJob]:
        runs, condition = _decided(job.get("if"), self.contexts)
        why = "" if runs else f"CI runs its job only if {condition}"
        if isinstance(job.get("uses"), str):
            yield from self._called(str(job["uses"]), table(job, "with"), why)
            return
        read = " ".join(map(text_of, (job.get("steps"), job.get("env"), job.get("defaults"))))
        used = dict.fromkeys((m[1] or m[2]).removesuffix(".") for m in _MATRIX.finditer(read))
        for group in alike(self._rows(job), used):
            readers = [self._reader(row, condition, why) for row in group[:MAX_ALIKE]]
            system = _system_of(readers[0], job)
            here = [reader for reader in readers if bool(_system_of(reader, job)) == bool(system)]
            steps = zip(*(reader.of_job(job) for reader in here), strict=True)
            yield CiJob(
                key=f"{self.where}:{name}",
                needs=tuple(f"{self.where}:{other}" for other in strings(job.get("needs"))),
                lines=tuple(chain.from_iterable(map(_first_that_runs, steps))),
                system=system,
            )

    def _reader(self, row: Mapping[str, object], condition: str, why: str) -> "_Steps":
        contexts = tuple({**each, "matrix": row} for each in self.contexts)
        return _Steps(flow=self, contexts=contexts, condition=condition, left_out=why)

    def _rows(self, job: Table) -> list[Mapping[str, object]]:
        matrix = _evaluated(dig(job, "strategy", "matrix"), self.contexts[0])
        return combinations(matrix) if matrix is not UNKNOWN else [{"*": UNKNOWN}]

    def _called(self, called: str, given: Table, why: str) -> Iterator[CiJob]:
        """The jobs of a called workflow; `why` they do not run, empty if they do."""
        path = called.removeprefix("./")
        if path == called:
            text, why = f"uses: {called}", why or "its lines are in another repository"
            line = CiLine(line=text, inner=(text,), where=self.where, left_out=why)
            yield CiJob(key=f"{self.where}:{called}", lines=(line,))
        elif self.depth < DEPTH:
            document = self.project.yaml(path)
            declared = table(document, "on", "workflow_call", "inputs")
            inputs = _inputs(declared, given, self.contexts[0])
            contexts = tuple({**each, "inputs": inputs} for each in self.contexts)
            flow = replace(
                self, where=path, document=document, contexts=contexts, depth=self.depth + 1
            )
            yield from (not_run(job, why) if why else job for job in flow.jobs())


def _system_of(reader: "_Steps", job: Table) -> str:
    """The system that a job runs on, if it is another one than Linux."""
    system = reader.filled(job.get("runs-on"))
    return system if OTHER_SYSTEMS.search(system) else ""


def _first_that_runs(rows: Sequence[list[CiLine]]) -> list[CiLine]:
    """The lines of a step in the first row of a matrix in which it runs."""
    return next((lines for lines in rows if not all(n.left_out for n in lines)), rows[0])


def _inputs(declared: Table, given: Table, context: Mapping[str, object]) -> dict[str, object]:
    defaults = {name: table(value).get("default", "") for name, value in declared.items()}
    return defaults | {str(k): _evaluated(v, context) for k, v in given.items()}


def _decided(condition: object, contexts: tuple[Mapping[str, object], ...]) -> tuple[bool, str]:
    """Whether something runs for one of the events, and its condition if not, or if unknown."""
    if condition is None:
        return True, ""
    answers = [holds(condition, context) for context in contexts]
    if True in answers:
        return True, ""
    return None in answers, " ".join(str(condition).split())


def _evaluated(value: object, context: Mapping[str, object]) -> object:
    """A value of YAML with the expressions in it replaced; `UNKNOWN` if one has no value."""
    if isinstance(value, Mapping):
        return {key: _evaluated(inner, context) for key, inner in value.items()}
    if isinstance(value, list):
        return [_evaluated(inner, context) for inner in value]
    if not isinstance(value, str):
        return value
    if whole := EXPRESSION.fullmatch(value.strip()):
        return value_of(whole[1], context)
    values = [value_of(each[1], context) for each in EXPRESSION.finditer(value)]
    if UNKNOWN in values:
        return UNKNOWN
    texts = iter(map(text_of, values))
    return EXPRESSION.sub(lambda _: next(texts), value)


class _Steps(Struct, kw_only=True):
    """Reads the steps of one job in their order."""

    flow: _Flow
    contexts: tuple[Mapping[str, object], ...]
    condition: str = ""
    """Why CI may not run it, if only CI can tell."""
    left_out: str = ""
    required: bool = True
    env: dict[str, object] = field(default_factory=dict)
    """Variables of the workflow, the job and the steps so far; `UNKNOWN` where only CI knows."""
    cwd: str = "."
    shell: str = ""
    own: str = "."
    """Folder that the project itself is checked out to."""
    foreign: set[str] = field(default_factory=set)
    """Folders of other repositories."""
    later: list[str] = field(default_factory=list)
    """Expressions without a value."""

    def of_job(self, job: Table) -> Iterator[list[CiLine]]:
        """The lines of each step."""
        for level in (self.flow.document, job):
            self.add_env(level.get("env"))
            defaults = table(level, "defaults", "run")
            self.cwd = self.filled(defaults.get("working-directory", self.cwd))
            self.shell = str(defaults.get("shell", self.shell))
        self.required = _evaluated(job.get("continue-on-error"), self.contexts[0]) is not True
        yield from self.read(job.get("steps"), 0)

    def read(self, steps: object, depth: int) -> Iterator[list[CiLine]]:
        for step in map(table, steps if isinstance(steps, list) else []):
            is_script = isinstance(step.get("run"), str)
            is_action = isinstance(step.get("uses"), str)
            lines = self._script(step) if is_script else iter(())
            yield [*(self._action(step, depth) if is_action else lines)]

    def _script(self, step: Table) -> Iterator[CiLine]:
        inner = self._inside(step)
        cwd = inner.below(inner.filled(step.get("working-directory", self.cwd)))
        script = re.sub(r"\$\{?GITHUB_WORKSPACE\b\}?", ROOT, inner.filled(step["run"]))
        program = str(step.get("shell", self.shell)).partition(" ")[0].removesuffix(".exe")
        if other := OTHER_SHELLS.get(program):
            inner.left_out = inner.left_out or f"it is written for {other}"
            yield inner.line(script.strip(), cwd, {}, (script.strip(),), [])
            return
        for piece in commands_of(script, cwd, inner.known_env()):
            kept = kept_by(piece.text)
            if kept and not inner.left_out:
                is_known = "$" not in kept[1] and not _LATER.search(kept[1])
                self.add_env({kept[0]: kept[1] if is_known else UNKNOWN})
            unset = [f"${name}" for name in piece.unset]
            reader = replace(inner, left_out=inner.left_out or piece.left_out)
            yield reader.line(piece.text, piece.cwd, piece.env, piece.inner, unset)

    def known_env(self) -> dict[str, str]:
        return {name: text_of(v) for name, v in self.env.items() if v is not UNKNOWN}

    def _inside(self, step: Table) -> "_Steps":
        """The reader of one step: its variables and its condition added."""
        inner = replace(self, env=dict(self.env))
        inner.add_env(step.get("env"))
        runs, condition = _decided(step.get("if"), inner.contexts)
        inner.condition = condition or self.condition
        if not runs:
            inner.left_out = self.left_out or f"CI runs it only if {condition}"
        if _evaluated(step.get("continue-on-error"), inner.contexts[0]) is True:
            inner.required = False
        return inner

    def line(
        self, text: str, cwd: str, env: Mapping[str, str], inner: tuple[str, ...], unset: list[str]
    ) -> CiLine:
        numbers = [int(number) for number in _LATER.findall(f"{text} {cwd}")]
        is_foreign = any(f"{cwd}/".startswith(f"{folder}/") for folder in self.foreign)
        restored = [self._restored(each) for each in (text, *inner)]
        later = {name for name, value in env.items() if _LATER.search(value)}
        known = {name: env[name] for name in env.keys() - later if ROOT not in env[name]}
        read = (f"${name}" for name in sorted(later) if re.search(rf"\$\{{?{name}\b", text))
        return CiLine(
            line=restored[0],
            inner=tuple(restored[1:]),
            where=self.flow.where,
            cwd=self._restored(cwd),
            env=tuple(sorted(known.items())),
            unknown=(*unset, *read, *(f"${{{{ {self.later[number]} }}}}" for number in numbers)),
            hidden=tuple(name for name, value in self.env.items() if value is UNKNOWN),
            condition=self.condition,
            left_out=self.left_out or ("it checks another repository" if is_foreign else ""),
            required=self.required,
        )

    def _restored(self, text: str) -> str:
        return _LATER.sub(lambda mark: f"${{{{ {self.later[int(mark[1])]} }}}}", text)

    def _action(self, step: Table, depth: int) -> Iterator[CiLine]:
        inner, given = self._inside(step), table(step, "with")
        name = str(step["uses"]).partition("@")[0]
        if name == "actions/checkout" and not inner.left_out:
            self._checked_out(given)
        elif name.startswith("./") and depth < DEPTH:
            yield from self._local(name.removeprefix("./").rstrip("/"), given, inner, depth)
        elif template := ACTIONS.get(name):
            inputs = re.sub(
                r"\{([\w-]+)(?::([^}]*))?\}",
                lambda m: text_of(given.get(m[1], m[2] or "")),
                template,
            )
            line = " ".join(inner.filled(inputs).split())
            cwd = inner.below(str(given.get("working-directory", ".")))
            yield inner.line(line, cwd, {}, (line,), [])
        elif not SETS_UP.search(name):
            inner.left_out = inner.left_out or "only GitHub can run this action"
            text = f"uses: {step['uses']}"
            yield inner.line(text, ".", {}, (text,), [])

    def _checked_out(self, given: Table) -> None:
        repository = self.filled(given.get("repository", ""))
        folder = _from_root(self.filled(given.get("path", ".")))
        known = dig(self.contexts[0], "github", "repository")
        is_own = repository in ("", known) or "github.repository" in str(given.get("repository"))
        is_another_revision = "ref" in given and folder != "."
        if is_own and not is_another_revision:
            self.own = folder
        else:
            self.foreign.add(folder)
            if folder == ".":
                self.left_out = self.left_out or f"it checks {repository}"

    def _local(self, folder: str, given: Table, inner: "_Steps", depth: int) -> Iterator[CiLine]:
        files = (f"{folder}/{name}" for name in ("action.yml", "action.yaml"))
        path = next(filter(self.flow.project.has, files), "")
        action = self.flow.project.yaml(path) if path else {}
        inputs = _inputs(table(action, "inputs"), given, inner.contexts[0])
        inner.contexts = tuple({**each, "inputs": inputs} for each in inner.contexts)
        inner.cwd, inner.flow = ".", replace(self.flow, where=path)
        yield from chain.from_iterable(inner.read(dig(action, "runs", "steps"), depth + 1))
        self.env |= {name: value for name, value in inner.env.items() if name not in self.env}

    def add_env(self, env: object) -> None:
        """Add the variables of one level; a matrix may hold them all."""
        for name, value in table(_evaluated(env, self.contexts[0])).items():
            self.env[str(name)] = value
            known = {**self.env, "*": UNKNOWN}
            self.contexts = tuple({**each, "env": known} for each in self.contexts)

    def filled(self, value: object) -> str:
        """A text with its expressions replaced; marks stand for those without a value."""
        if not isinstance(value, str):
            return text_of(value) if value is not None else ""

        def one(expression: re.Match[str]) -> str:
            known = value_of(expression[1], self.contexts[0])
            if known is not UNKNOWN:
                return text_of(known)
            self.later.append(expression[1])
            return f"ATLAS_ONLY_IN_CI_{len(self.later) - 1}_"

        return EXPRESSION.sub(one, value)

    def below(self, cwd: str) -> str:
        """A folder of CI as one of the project."""
        path = _from_root(cwd)
        if self.own != "." and f"{path}/".startswith(f"{self.own}/"):
            return normpath(path.removeprefix(self.own).lstrip("/") or ".")
        return path


def _from_root(path: str) -> str:
    return normpath(path.removeprefix(ROOT).lstrip("/") or ".")

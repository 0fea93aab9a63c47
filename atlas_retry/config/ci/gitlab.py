"""Reads `.gitlab-ci.yml`: the lines of each job, as a push or a merge request has them.

Source: "CI/CD YAML syntax reference" (GitLab).
"""

import re
from collections.abc import Iterator, Mapping
from itertools import filterfalse, product

from msgspec import Struct

from atlas_retry.config.ci.expressions import holds, text_of
from atlas_retry.config.ci.jobs import OTHER_SYSTEMS, ROOT, CiJob, CiLine, alike
from atlas_retry.config.ci.script import commands_of
from atlas_retry.config.project import ProjectFiles, Table, dig, table
from atlas_retry.patterns import words

FILE = ".gitlab-ci.yml"
NO_JOBS = words(
    "stages variables default include workflow image services before_script after_script cache spec"
)
STAGES = ["build", "test", "deploy"]
BRANCHES = words("branches merge_requests pushes main master")
"""What `only` has for a push or a merge request."""
_COMMON = {"$CI": "true", "$GITLAB_CI": "true", "$CI_DEFAULT_BRANCH": "main"}
EVENTS: tuple[Mapping[str, object], ...] = (
    _COMMON | {"$CI_PIPELINE_SOURCE": "push", "$CI_COMMIT_BRANCH": "main"},
    _COMMON | {"$CI_PIPELINE_SOURCE": "merge_request_event", "$CI_MERGE_REQUEST_IID": "1"},
)
NOT_BY_ITSELF = ("never", "manual")
BY_HAND = "CI runs its job by hand"
DEPTH = 8


def jobs(project: ProjectFiles) -> Iterator[CiJob]:
    """The jobs that run for a push or a merge request, each with what stops it elsewhere."""
    document = _included(project, FILE, 0)
    stages = [*map(text_of, _listed(document.get("stages")))] or STAGES
    names = filterfalse(NO_JOBS.__contains__, document)
    every = {name: _extended(document, name, 0) for name in names if not name.startswith(".")}
    stage_of = {name: str(job.get("stage", "test")) for name, job in every.items()}
    before = {stage: stages[:at] for at, stage in enumerate(stages)}
    for name, job in every.items():
        ahead = before.get(stage_of[name], [])
        earlier = [other for other in every if stage_of[other] in ahead]
        if "script" in job:
            yield from _Job(document=document, name=name, job=job).read(earlier)


def _included(project: ProjectFiles, path: str, depth: int) -> dict[str, object]:
    """A document over those of its `include: local`."""
    own = project.yaml(path)
    merged: dict[str, object] = {}
    for include in _listed(own.get("include")):
        local = include if isinstance(include, str) else dig(include, "local")
        if isinstance(local, str) and "://" not in local and depth < DEPTH:
            for found in project.below(local.lstrip("/")):
                merged = _merged(merged, _included(project, found, depth + 1))
    return _merged(merged, own)


def _merged(below: Table, above: Table) -> dict[str, object]:
    """Two tables as GitLab merges them: tables by their keys, all else is replaced."""
    merged = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], Mapping) and isinstance(above[key], Mapping):
            merged[key] = _merged(table(below[key]), table(above[key]))
    return merged


def _extended(document: Table, name: str, depth: int) -> dict[str, object]:
    job = table(document, name)
    merged: dict[str, object] = {}
    for parent in _listed(job.get("extends")) if depth < DEPTH else ():
        merged = _merged(merged, _extended(document, str(parent), depth + 1))
    return _merged(merged, job)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]


class _Job(Struct, frozen=True, kw_only=True):
    document: Table
    name: str
    job: Table

    def read(self, earlier: list[str]) -> Iterator[CiJob]:
        left_out, optional = self._when()
        needs = self.job.get("needs")
        names = [str(dig(n, "job") or n) for n in _listed(needs)] if needs is not None else earlier
        tags = " ".join(map(text_of, _listed(self.job.get("tags"))))
        script = "\n".join([*self._lines("before_script"), *self._lines("script")])
        at_root = re.sub(r"\$\{?CI_PROJECT_DIR\b\}?", ROOT, script)
        rows = list[dict[str, object]]()
        for entry in map(table, _listed(dig(self.job, "parallel", "matrix"))):
            every = product(*map(_listed, entry.values()))
            rows += [dict(zip(entry, row, strict=True)) for row in every]
        for row, *_ in alike(rows or [{}], re.findall(r"\$\{?(\w+)", script)):
            env = self._env(row)
            lines = [
                CiLine(
                    line=piece.text,
                    inner=piece.inner,
                    where=FILE,
                    cwd=piece.cwd,
                    env=tuple(sorted((k, v) for k, v in piece.env.items() if ROOT not in v)),
                    unknown=tuple(f"${name}" for name in piece.unset),
                    left_out=left_out or piece.left_out,
                    required=not optional,
                )
                for piece in commands_of(at_root, ".", env)
            ]
            yield CiJob(
                key=f"{FILE}:{self.name}",
                lines=tuple(lines),
                needs=tuple(f"{FILE}:{name}" for name in names),
                system=tags if OTHER_SYSTEMS.search(tags) else "",
            )

    def _lines(self, key: str) -> Iterator[str]:
        default = table(self.document, "default").get(key, self.document.get(key))
        yield from self._flat(self.job.get(key, default), 0)

    def _flat(self, value: object, depth: int) -> Iterator[str]:
        """The lines of a script; a tuple is a `!reference`."""
        if isinstance(value, tuple) and depth < DEPTH:
            first, *rest = map(str, value)
            yield from self._flat(dig(_extended(self.document, first, 0), *rest), depth + 1)
        elif isinstance(value, list):
            for inner in value:
                yield from self._flat(inner, depth + 1)
        elif isinstance(value, str):
            yield value

    def _env(self, row: Mapping[str, object]) -> dict[str, str]:
        levels = (self.document.get("variables"), self.job.get("variables"), row)
        env = {"CI_PROJECT_DIR": ROOT}
        for level in map(table, levels):
            env |= {
                k: text_of(dig(v, "value") if isinstance(v, Mapping) else v)
                for k, v in level.items()
            }
        return {
            name: re.sub(r"\$\{?(\w+)\}?", lambda m: env.get(m[1], m[0]), v)
            for name, v in env.items()
        }

    def _when(self) -> tuple[str, bool]:
        """Why the job does not run by itself, and whether it may fail."""
        may_fail = self.job.get("allow_failure") is True
        if "rules" in self.job:
            return self._by_rules(may_fail=may_fail)
        only = self.job.get("only")
        refs = {*map(str, _listed(dig(only, "refs") if isinstance(only, Mapping) else only))}
        if self.job.get("when") == "manual":
            return BY_HAND, may_fail
        if refs and refs.isdisjoint(BRANCHES) and "/" not in "".join(refs):
            return f"CI runs its job only for {', '.join(sorted(refs))}", may_fail
        return "", may_fail

    def _by_rules(self, *, may_fail: bool) -> tuple[str, bool]:
        chosen = [rule for rule in map(self._rule, EVENTS) if rule is not None]
        modes = [rule.get("when", self.job.get("when")) for rule in chosen]
        running = [r for r, mode in zip(chosen, modes, strict=True) if mode not in NOT_BY_ITSELF]
        if running:
            return "", running[0].get("allow_failure", may_fail) is True
        return BY_HAND if "manual" in modes else "no push and no request runs its job", may_fail

    def _rule(self, event: Mapping[str, object]) -> Table | None:
        """The first rule that fits an event; one that only CI can decide fits."""
        own = {f"${name}": value for name, value in self._env({}).items()}
        variables = {**own, **event}
        for rule in map(table, _listed(self.job.get("rules"))):
            condition = re.sub(r"\$\{(\w+)\}", r"$\1", str(rule.get("if", "true")))
            if holds(condition, variables) is not False:
                return rule
        return None

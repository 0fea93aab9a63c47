"""Runs with real git, real gates and a real command as agent, under a guard that a test writes."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import agents, history, process, state_dir, workspace
from atlas_retry.events import Emit, Event, fan_out
from atlas_retry.guard.judgement import Judgement
from atlas_retry.model import Outcome
from atlas_retry.run import wiring
from atlas_retry.run.decide import Progress
from atlas_retry.run.effects import Contents, Run
from atlas_retry.run.loop import retry
from atlas_retry.run.one import Asked, order_of, site_of
from atlas_retry.run.open import Site
from tests.projects import Project


class Seen(Struct, frozen=True, kw_only=True):
    """What such a guard is shown."""

    changed: frozenset[str]
    """Paths that the turn changed."""
    origin: Contents
    """Those of them as they were when the run began."""


Guard = Callable[[Seen], Judgement]


def acts(project: Project, *turns: Mapping[str, str | None]) -> None:
    """Configure an agent that writes these files, turn by turn; None: it deletes the file."""
    folder = project.root.parent / "turns"
    folder.mkdir()
    for number, files in enumerate(turns, start=1):
        step = folder / str(number)
        step.mkdir()
        lines = ["set -e"]
        for path, text in files.items():
            if text is None:
                lines.append(f"rm {path}")
            else:
                (step / path.replace("/", "-")).write_text(text)
                lines.append(f"mkdir -p $(dirname {path})")
                lines.append(f"cp {step / path.replace('/', '-')} {path}")
        (folder / f"{number}.sh").write_text("\n".join(lines) + "\n")
    line = f"n=$(ls {folder}/*.sh | head -1); mv $n $n.done; sh $n.done"
    project.configure(agent={"backend": "command", "command": line})


def judged(project: Project, guard: Guard, told: list[Event], attempts: int = 3) -> Outcome:
    """One run in this process, judged by `guard`; its journal is written as of any run."""
    asked = Asked(ai_fix=True, attempts_flag=attempts)
    site = site_of(project.root, asked, project.environ)
    run_id = state_dir.new_run_id()
    opening = history.Opening(
        run_id=run_id,
        order=order_of(asked),
        repository=str(site.git.common_dir),
        mark=process.mark(),
    )
    with workspace.lock(site.git), history.journal(site.state, opening, told.append) as journal:
        journey = _journey(site, run_id, attempts, fan_out((journal, told.append)))

        def judge(origin: str, before: str, after: str, _: Progress) -> Judgement:
            changed = {c.path for c in workspace.changes(site.git, before, after)}
            there = workspace.tree(site.git, origin)
            files = {path: (there.mode(path), there.read(path)) for path in changed}
            was = {p: (m, c) if m and c is not None else None for p, (m, c) in files.items()}
            return guard(Seen(changed=frozenset(changed), origin=was))

        return retry(journey.run, replace(wiring.effects(journey), judge=judge))


def _journey(site: Site, run_id: str, attempts: int, emit: Emit) -> wiring.Journey:
    settings = site.settings.agent
    agent = agents.resolve(settings.backend)(settings, emit, site.environ)
    return wiring.Journey(
        site=site,
        git=site.git,
        folder=wiring.run_folder(site, run_id),
        run=Run(
            run_id=run_id,
            workspace=site.facts,
            limits=wiring.limits(site, with_agent=True, attempts_flag=attempts),
            agent=settings.backend,
        ),
        agent=agent,
        reviewer=lambda _: agent,
        facts=workspace.git_facts(site.root, environ=site.environ),
        learnings=lambda _: (),
        learn=lambda _: None,
        emit=emit,
        started_s=time.monotonic(),
    )


def prompt_of(outcome: Outcome, number: int) -> str:
    """What the n-th attempt was asked."""
    return Path(outcome.attempts[number - 1].prompt_path or "").read_text()

"""Runs with real git, real gates and a real command as agent, under a guard that a test writes."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from atlas_retry import agents, process, state_dir
from atlas_retry.events import Event, fan_out
from atlas_retry.guard import Judgement
from atlas_retry.history import values
from atlas_retry.history.journal import opened_journal
from atlas_retry.history.values import Order
from atlas_retry.model import Contents, Outcome
from atlas_retry.run.budget import SharedBudget
from atlas_retry.run.effects import Effects
from atlas_retry.run.effects.guard import GuardEffects
from atlas_retry.run.effects.open_run import OpenRun, run_folder
from atlas_retry.run.effects.tree import TreeEffects
from atlas_retry.run.loop import retry
from atlas_retry.run.one import RunOptions, opened_with
from atlas_retry.run.progress import Progress, Run, limits
from atlas_retry.workspace.isolation.isolated import lock
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


def judged(project: Project, guard: Guard, events: list[Event], attempts: int = 3) -> Outcome:
    """One run in this process, judged by `guard`; its journal is written as of any run."""
    asked = RunOptions(order=Order(ai_fix=True, attempts_flag=attempts))
    opened = opened_with(project.root, asked, project.environ)
    run_id = state_dir.new_run_id()
    opening = values.Opening(
        run_id=run_id,
        order=asked.order,
        repository=str(opened.git.common_dir),
        mark=process.mark(),
    )
    with lock(opened.git), opened_journal(opened.state, opening, events.append) as journal:
        emit = fan_out((journal, events.append))
        settings = opened.settings.agent
        agent = agents.resolve(settings.backend)(settings, emit, opened.environ)
        run = Run(
            run_id=run_id,
            workspace=opened.facts,
            limits=limits(opened.settings, with_agent=True, attempts_flag=attempts),
            agent=settings.backend,
        )
        open_run = OpenRun(
            run=run,
            opened=opened,
            folder=run_folder(opened, run_id),
            agent=agent,
            reviewer=lambda _: agent,
            journal=journal,
            emit=emit,
            started_s=time.monotonic(),
            budget=SharedBudget(),
        )
        return retry(_Judged(of=open_run, asked=guard))


class _JudgedTurns(GuardEffects, frozen=True, kw_only=True):
    asked: Guard

    def judge(self, before: str, after: str, progress: Progress) -> Judgement:
        tree = TreeEffects(of=self.of)
        changed = {change.path for change in tree.changes(before, after)}
        origin = tree.read(progress.origin, changed)
        return self.asked(Seen(changed=frozenset(changed), origin=origin))


class _Judged(Effects, kw_only=True):
    asked: Guard

    @property
    def guard(self) -> GuardEffects:
        return _JudgedTurns(of=self.of, asked=self.asked)


def prompt_of(outcome: Outcome, number: int) -> str:
    """What the n-th attempt was asked."""
    return Path(outcome.attempts[number - 1].prompt_path or "").read_text()

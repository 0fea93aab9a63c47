"""How a run asks its agent: whether it is there, with which prompt, for one turn."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from atlas_retry import agents, process
from atlas_retry.agents.unavailable import Unavailable
from atlas_retry.events import Notice
from atlas_retry.model import AgentReply, AgentRequest
from atlas_retry.prompt import compose
from atlas_retry.run.briefing import next_request, step_of, traced_brief
from atlas_retry.run.decide import last_attempt
from atlas_retry.run.effects.git import GitEffects
from atlas_retry.run.effects.open_run import Part
from atlas_retry.run.progress import Progress
from atlas_retry.text.units import labelled
from atlas_retry.workspace.walk import remove_special_rules

PATIENCE_S = 2.0
"""Seconds after which it is said what is waited for."""


class AgentEffects(Part, frozen=True):
    """The agent of a run."""

    def unavailable(self) -> Unavailable | None:
        """Why no agent is available; it is asked before the first attempt of this process."""
        if self.of.is_agent_there:
            return None
        settings = self.opened.settings.agent
        with self._saying(f"  checking that {settings.backend} is available"):
            unavailable = agents.check(settings, self.opened.environ)
        self.of.is_agent_there = unavailable is None
        return unavailable

    def say_unavailable(self) -> None:
        """Say before gates and fixers run that no agent will: they may take long."""
        if self.of.run.limits.budget.attempts != 0 and (unavailable := self.unavailable()):
            text = f"{unavailable.error}: only gates and fixers will run"
            remedy = labelled("next", unavailable.remedy) if unavailable.remedy else ()
            self.warn("\n".join((text, *remedy)))

    def request(self, progress: Progress, number: int) -> tuple[AgentRequest, str]:
        """The next attempt's request, and the path of its prompt."""
        scratch = self.of.attempt_folder(number)
        with self._saying("  tracing what the failing tests execute"):
            brief = traced_brief(self.opened, progress.latest, scratch, self.of.emit)
        if number == 1:
            from atlas_retry.run.introducing import introduced

            with self._saying("  looking for the part of your change that made a test fail"):
                found = introduced(self.opened, progress.latest, scratch, self.of.emit)
            if found:
                text = f"  {found.test} fails since {found.place} of your change"
                self.of.emit(Notice(text=text))
            self.opened.learned.introduced = found
        step = step_of(self.opened.settings, number)
        prompt = compose(
            replace(
                brief,
                attempt=number,
                ask=step.ask,
                budget_chars=int(brief.budget_chars * step.room),
                max_attempts=last_attempt(progress, self.of.run.limits),
                history=progress.attempts,
                learnings=self.of.journal.recall(progress.latest),
                introduced=self.opened.learned.introduced,
            )
        )
        prompt_file = scratch / "prompt.md"
        prompt_file.write_text(prompt.text, encoding="utf-8", errors="replace")
        return next_request(self.opened, prompt, scratch, progress, number), str(prompt_file)

    def ask(self, request: AgentRequest) -> AgentReply:
        """One turn of the agent, paid from the budget."""
        with process.at_once():
            reply = self.of.agent(request)
        self.opened.tracker.moved()
        for path in remove_special_rules(self.opened.root):
            text = f"removed, as git would wait for it: {path} was made a special file"
            self.warn(text)
        GitEffects(of=self.of).undo_git(request.attempt)
        self.of.budget.settle(str(self.opened.root), reply.cost_usd or 0.0)
        touched, root = [], self.opened.root.resolve()
        for path in reply.touched:
            there = (root / path).resolve()  # an agent may name a file behind a link
            is_inside = there.is_relative_to(root)
            touched.append(there.relative_to(root).as_posix() if is_inside else path)
        return replace(reply, touched=tuple(touched))

    @contextmanager
    def _saying(self, text: str) -> Iterator[None]:
        """Say what is done if it takes longer than people wait without a word."""
        late = threading.Timer(PATIENCE_S, self.of.emit, [Notice(text=text)])
        late.daemon = True
        late.start()
        try:
            yield
        finally:
            late.cancel()

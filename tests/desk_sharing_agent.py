"""An agent beside which a user edits the same workspace. For `test_attribution`."""

from collections.abc import Mapping
from pathlib import Path

from atlas_retry.events import Emit
from atlas_retry.model import Agent, AgentReply, AgentRequest, ReplyStatus
from atlas_retry.settings import AgentSettings
from tests.projects import FIXED, TEST

USERS_TEST = TEST.replace("calc.add(1, 2), 3", "calc.add(2, 2), 4")


def _factory(*, names_all: bool, fixes: bool = True) -> Agent:
    def ask(request: AgentRequest) -> AgentReply:
        root = Path(request.workspace)
        (root / "test_calc.py").write_text(USERS_TEST)
        (root / "notes.txt").write_text("the user's\n")
        if fixes:
            (root / "calc.py").write_text(FIXED)
        touched = ("./calc.py",) if fixes else ()
        return AgentReply(status=ReplyStatus.DONE, touched=touched, touched_all=names_all)

    return ask


def naming(_: AgentSettings, __: Emit, ___: Mapping[str, str]) -> Agent:
    """Says all that it has edited."""
    return _factory(names_all=True)


def silent(_: AgentSettings, __: Emit, ___: Mapping[str, str]) -> Agent:
    """May have edited more than it says."""
    return _factory(names_all=False)


def idle(_: AgentSettings, __: Emit, ___: Mapping[str, str]) -> Agent:
    """Says that it has edited nothing."""
    return _factory(names_all=True, fixes=False)

"""An agent with a conversation, which is cut off in its first turn. For `test_resume`."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from atlas_retry import process
from atlas_retry.events import AgentActivity, Emit
from atlas_retry.model import Agent, AgentReply, AgentRequest, ReplyStatus
from atlas_retry.process import proc
from atlas_retry.settings import AgentSettings
from tests.projects import FIXED


def dear(_: AgentSettings, emit: Emit, __: Mapping[str, str]) -> Agent:
    """Without a conversation: it tells what it costs, and is cut off every time."""

    def ask(request: AgentRequest) -> AgentReply:
        emit(AgentActivity(text="reading", cost_usd=2.0))
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError(request)

    return ask


def orphaning(settings: AgentSettings, emit: Emit, environ: Mapping[str, str]) -> Agent:
    """Is killed together with what would have ended its child; `agent.path` names that child."""

    def ask(request: AgentRequest) -> AgentReply:
        emit(AgentActivity(text="reading", cost_usd=2.0))
        mark = {process.mark(): "1.", "PATH": environ["PATH"]}
        silent = subprocess.DEVNULL
        subprocess.Popen(
            ("sleep", settings.path or "9"),
            env=mark,
            stdout=silent,
            stderr=silent,
            start_new_session=True,
        )
        for pid in proc.children():
            if b"atlas-watchdog" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError(request)

    return ask


def factory(settings: AgentSettings, emit: Emit, environ: Mapping[str, str]) -> Agent:
    """`agent.path` names a folder in which it notes what it was asked."""
    notes = Path(settings.path or environ["HOME"])

    def ask(request: AgentRequest) -> AgentReply:
        root = Path(request.workspace)
        emit(AgentActivity(text="reading", session_id="conversation-1", cost_usd=0.1))
        is_first = not (notes / "asked").exists()
        with (notes / "asked").open("a") as file:
            seen = (root / "calc.py").read_text().splitlines()[-1]
            file.write(f"{request.session} {request.session_id} {seen}\n")
        if is_first:
            (root / "calc.py").write_text("# half done\n")
            os.kill(os.getpid(), signal.SIGKILL)
        (root / "calc.py").write_text(FIXED)
        return AgentReply(status=ReplyStatus.DONE, cost_usd=0.5, session_id=request.session_id)

    return ask


def forgetful(settings: AgentSettings, emit: Emit, environ: Mapping[str, str]) -> Agent:
    """Guts the test in the part of its turn that is cut off; names later edits alone."""
    notes = Path(settings.path or environ["HOME"])

    def ask(request: AgentRequest) -> AgentReply:
        root = Path(request.workspace)
        emit(AgentActivity(text="reading", session_id="conversation-1"))
        asked = notes / "asked"
        if not asked.exists():
            asked.touch()
            (root / "test_calc.py").write_text("def test_add():\n    pass\n")
            os.kill(os.getpid(), signal.SIGKILL)
        (root / "README.md").write_text("# calc\n")
        return AgentReply(
            status=ReplyStatus.DONE,
            session_id=request.session_id,
            touched=("README.md",),
            touched_all=True,
        )

    return ask

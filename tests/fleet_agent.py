"""An agent that says what it costs while it works, and may be held up; for fleets in tests.

`agent.path` is a folder. While `hold` is in it a turn goes on; `asked` gets a line for each turn;
`step_s`, where it is there, says how long a step takes. While `half` is in it the first attempt
fixes nothing, and the second one goes on.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from atlas_retry import process
from atlas_retry.errors import Interrupted
from atlas_retry.events import AgentActivity, Emit
from atlas_retry.model import Agent, AgentReply, AgentRequest, ReplyStatus
from atlas_retry.settings import AgentSettings

STEPS = 5
STEP_USD = 0.05
TURN_USD = STEPS * STEP_USD
STEP_S = "0.1"
NAME = "fleet_agent:factory"
"""As a scene has a copy of it."""


def factory(settings: AgentSettings, emit: Emit, _: Mapping[str, str]) -> Agent:
    """An agent whose turn costs `TURN_USD`."""
    notes = Path(settings.path or "")

    def ask(request: AgentRequest) -> AgentReply:
        told_s = notes / "step_s"
        step_s = float(told_s.read_text() if told_s.exists() else STEP_S)
        with (notes / "asked").open("a") as file:
            file.write(f"{os.getpid()} {request.workspace}\n")
        for step in range(1, STEPS + 1):
            emit(AgentActivity(text="thinking", cost_usd=step * STEP_USD))
            _pause(step_s)
        is_half = (notes / "half").exists()
        while (notes / ("half" if is_half and request.attempt > 1 else "hold")).exists():
            _pause(step_s)
        root = Path(request.workspace)
        if is_half:
            (root / "name.txt").write_text("half\n")
        else:
            (root / "state.txt").write_text("good\n")
        return AgentReply(status=ReplyStatus.DONE, cost_usd=TURN_USD)

    return ask


def _pause(seconds: float) -> None:
    time.sleep(seconds)
    if signum := process.stop_requested():
        raise Interrupted(signum)

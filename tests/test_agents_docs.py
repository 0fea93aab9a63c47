"""The page about agents tells the truth: its configurations load, its example fixes."""

import re
from pathlib import Path

import pytest
import yaml

from atlas_retry import config
from atlas_retry.agents.command_output import read
from atlas_retry.agents.presets import PRESETS
from atlas_retry.model import Tokens, Verdict
from tests.projects import Project, make_project

PAGE = (Path(__file__).parents[1] / "docs" / "agents.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("snippet", blocks("yaml"))
def test_configurations_on_the_page_load(
    snippet: str, tmp_path: Path, environ: dict[str, str]
) -> None:
    given = yaml.safe_load(snippet)
    whole = {"version": 1, "validation": {"test": ["true"]}} | given
    (tmp_path / ".git").mkdir()
    (tmp_path / "atlas.yaml").write_text(yaml.safe_dump(whole))
    loaded = config.load(tmp_path, environ=environ, overrides={})
    if backend := given.get("agent", {}).get("backend"):
        assert loaded.agent.backend == backend


@pytest.mark.parametrize("name", PRESETS)
def test_the_page_shows_how_each_preset_is_called(name: str) -> None:
    row = re.findall(rf"^\| `{name}` \|.*?\| `(.+?)`", PAGE, re.MULTILINE)[0]
    called = iter(PRESETS[name].line.split())
    assert all(word in called for word in row.replace("...", "{prompt_file}").split())


def test_the_custom_agent_example_is_short_and_fixes_a_project(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = blocks("python")
    lines = [line for line in example.splitlines() if line.strip()]
    assert len(lines) <= 20
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "my_agent.py").write_text(example)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    project: Project = make_project(tmp_path, environ)
    project.configure(agent={"backend": "my_agent:factory"})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert outcome.attempts[0].summary == "plus, not minus"


# --- what other CLIs print ---------------------------------------------------------------------

CODEX = """{"type":"thread.started","thread_id":"0199"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"i0","type":"command_execution","command":"ls"}}
{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"Fixed."}}
{"type":"turn.completed","usage":{"input_tokens":900,"cached_input_tokens":400,"output_tokens":20}}
"""
GEMINI = """Loaded cached credentials.
{
  "session_id": "g-1",
  "response": "Fixed.",
  "stats": {"models": {"gemini-3-pro": {"api": {"totalRequests": 2},
    "tokens": {"prompt": 500, "candidates": 20, "total": 520, "cached": 100, "thoughts": 7,
    "input": 400, "tool": 0}}}}
}
"""
OPENCODE = """{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{"type":"step-start"}}
{"type":"text","timestamp":2,"sessionID":"ses_1","part":{"type":"text","text":"Fixed."}}
{"type":"step_finish","timestamp":3,"sessionID":"ses_1","part":{"type":"step-finish","cost":0.01,
"""
OPENCODE = OPENCODE.rstrip("\n") + (
    '"tokens":{"input":5,"output":6,"reasoning":0,"cache":{"read":7,"write":8}}}}\n'
    '{"type":"step_finish","sessionID":"ses_1","part":{"type":"step-finish","cost":0.02}}\n'
)
CLAUDE = '{"type":"result","session_id":"c-1","result":"Fixed.","total_cost_usd":0.5}'
MINI = """{
  "info": {"model_stats": {"instance_cost": 0.0063, "api_calls": 2}, "config": {"agent": {}},
    "exit_status": "Submitted", "submission": "Fixed."},
  "messages": [{"role": "system", "content": "a {", "extra": {}}],
  "trajectory_format": "mini-swe-agent-1.1"
}
"""
AIDER = "Tokens: 1.0k sent, 10 received. Cost: $0.0142 message, $0.0300 session.\nApplied edit.\n"


@pytest.mark.parametrize(
    ("printed", "session_id", "cost_usd", "tokens"),
    [
        (CODEX, "0199", None, Tokens(input=500, output=20, cache_read=400)),
        (GEMINI, "g-1", None, Tokens(input=400, output=27, cache_read=100)),
        (OPENCODE, "ses_1", 0.03, Tokens(input=5, output=6, cache_read=7, cache_write=8)),
        (CLAUDE, "c-1", 0.5, Tokens()),
        (MINI, None, 0.0063, Tokens()),
    ],
    ids=["codex", "gemini", "opencode", "claude", "mini-swe-agent"],
)
def test_cost_tokens_and_session_are_read_from_a_clis_output(
    printed: str, session_id: str, cost_usd: float | None, tokens: Tokens
) -> None:
    output = read(printed)
    assert (output.words, output.session_id, output.cost_usd) == ("Fixed.", session_id, cost_usd)
    assert output.tokens == tokens


@pytest.mark.parametrize(
    "printed", ["plain words", "", "{no json}", '{"type": 3}', "{" * 9_000, "{}\n\x00"]
)
def test_output_that_is_not_json_is_the_summary(printed: str) -> None:
    assert read(printed).words == printed


@pytest.mark.parametrize(
    "printed",
    [
        '{"result": "x", "total_cost_usd": 0.1, "total_cost_usd": 0.2}',
        '{\n"result": "x",\n"total_cost_usd": 0.1, "total_cost_usd": 0.1\n}',
        '{"part": {"cost": 0.1, "type": "text", "cost": 0.2}}',
        '{"total_cost_usd": 0.1, "part": {"cost": 0.2}}',
        '{"part": {"cost": 0.1}}\n{"part": {"cost": 0.1}, "part": {"cost": 0.2}}',
    ],
)
def test_a_cost_given_twice_in_one_object_is_unknown(printed: str) -> None:
    assert read(printed).cost_usd is None


def test_a_cost_that_an_answer_quotes_is_not_given_twice() -> None:
    printed = r'{"result": "\"total_cost_usd\": 1", "total_cost_usd": 0.1}'
    assert read(printed).cost_usd == 0.1


@pytest.mark.parametrize("printed", [AIDER, AIDER.replace("received. ", "received.\n")])
def test_the_cost_in_aiders_output_is_read(printed: str) -> None:
    assert read(printed).cost_usd == 0.03

"""The agent CLIs that have a preset, the real programs: each fixes a bug with a scripted model.

None is a dependency: a CLI that is not on PATH is skipped, and the reason says how to install it.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from atlas_retry import agents
from atlas_retry.agents.presets import PRESETS
from atlas_retry.settings import AgentSettings
from tests.messages_server import MessagesServer, Step, call, say, serving
from tests.needs import needs
from tests.projects import FIXED, Project, atlas

CODEX = """model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
"""
OPENCODE = {"provider": {"anthropic": {"options": {"baseURL": "{url}/v1"}}}}
SEARCH_REPLACE = """calc.py
<<<<<<< SEARCH
    return a - b
=======
    return a + b
>>>>>>> REPLACE
"""
SAID = "plus, not minus"
ANTHROPIC = {"ANTHROPIC_API_KEY": "dummy-key", "ANTHROPIC_API_BASE": "{url}"}
MODEL = "anthropic/claude-sonnet-4-5-20250929"
SED = "sed -i 's/a - b/a + b/' calc.py"
SUBMIT = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo '{SAID}'"


class Cli(Struct, frozen=True, kw_only=True):
    """How a CLI is pointed to the scripted model, and what that does."""

    script: Callable[[Path], tuple[Step, ...]]
    variables: Mapping[str, str]
    files: Mapping[str, str] = {}
    """Below HOME, with their content."""
    model: str = "scripted"
    args: tuple[str, ...] = ()
    tells_cost: bool = False


def replaced(root: Path) -> tuple[Step, ...]:
    """By the tool of Gemini CLI."""
    edit = {"old_string": "a - b", "new_string": "a + b", "instruction": SAID}
    return call("replace", file_path=str(root / "calc.py"), **edit), say(SAID)


def edited(root: Path) -> tuple[Step, ...]:
    """By the tool of OpenCode."""
    edit = call("edit", filePath=str(root / "calc.py"), oldString="a - b", newString="a + b")
    return edit, say(SAID)


CLIS = {
    "codex": Cli(
        script=lambda _: (call("exec_command", cmd=SED), say(SAID)),
        variables={"OPENAI_API_KEY": "dummy-key"},
        files={".codex/config.toml": CODEX},
    ),
    "gemini": Cli(
        script=replaced,
        variables={"GEMINI_API_KEY": "dummy-key", "GOOGLE_GEMINI_BASE_URL": "{url}"},
        files={
            ".gemini/settings.json": json.dumps(
                {"security": {"auth": {"selectedType": "gemini-api-key"}}}
            )
        },
        model="gemini-2.5-pro",
    ),
    "opencode": Cli(
        script=edited,
        variables={
            "ANTHROPIC_API_KEY": "dummy-key",
            "OPENCODE_CONFIG_CONTENT": json.dumps(OPENCODE),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
        model=MODEL,
        args=("--pure",),
        tells_cost=True,
    ),
    "aider": Cli(
        script=lambda _: (say(SEARCH_REPLACE + SAID),),
        variables=ANTHROPIC | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        files={
            # Otherwise it fetches a list of prices.
            ".aider/caches/model_prices_and_context_window.json": '{"none": {}}',
            # Otherwise it writes a name into .git/config, which the guard refuses.
            ".gitconfig": "[user]\nname = dev\nemail = dev@example.invalid\n",
        },
        model=MODEL,
        args=("--file", "calc.py"),
        tells_cost=True,
    ),
    "mini-swe-agent": Cli(
        script=lambda _: (call("bash", command=SED), call("bash", command=SUBMIT)),
        variables=ANTHROPIC | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "MSWEA_CONFIGURED": "1"},
        model=MODEL,
        tells_cost=True,
    ),
}


def test_every_preset_has_a_test_here() -> None:
    assert CLIS.keys() == PRESETS.keys()


def retry(project: Project, name: str, server: MessagesServer) -> dict[str, Any]:
    """One run with a preset, as its report."""
    cli = CLIS[name]
    home = Path(project.environ["HOME"])
    for path, content in cli.files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(content.replace("{url}", server.url))
    for key, value in cli.variables.items():
        project.environ[key] = value.replace("{url}", server.url)
    agent = {"backend": name, "path": None, "models": [cli.model], "extra_args": [*cli.args]}
    project.configure(agent=agent)
    (project.root / ".gitignore").write_text("__pycache__/\n.aider*\n")
    project.commit()
    report: dict[str, Any] = json.loads(atlas(project, "retry", ".", "--ai-fix", "--json").out)
    return report


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs(row.program)) for name, row in PRESETS.items()]
)
def test_a_preset_fixes_a_bug(name: str, project: Project) -> None:
    with serving(*CLIS[name].script(project.root)) as server:
        run = retry(project, name, server)
    assert run["verdict"] == "fixed", run["attempts"]
    assert (project.root / "calc.py").read_text() == FIXED
    (attempt,) = run["attempts"]
    assert SAID in attempt["summary"]
    assert attempt["model"] == CLIS[name].model
    assert [change["path"] for change in attempt["changes"]] == ["calc.py"]
    assert (attempt["cost_usd"] is not None) is CLIS[name].tells_cost


@pytest.mark.parametrize("name", PRESETS)
def test_a_missing_preset_program_is_reported_with_how_to_install_it(name: str) -> None:
    unavailable = agents.check(AgentSettings(backend=name), {"PATH": "/nonexistent"})
    assert unavailable
    assert (unavailable.error, unavailable.remedy) == (
        f"{PRESETS[name].program} is not on PATH",
        PRESETS[name].install,
    )

"""A small program that stands in for the Claude Code CLI where its binary is not available.

Speaks the same options, requests and stream-json as far as the tests ask; what it prints is what
CLI 2.1.330 was seen to print. It proves nothing about the CLI: the tests marked `claude` do.
"""

import fnmatch
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

VERSION = "2.1.330 (Claude Code)"
USD_PER_TOKEN = (2e-6, 10e-6)


def main() -> int:
    if "--version" in sys.argv:
        write(VERSION)
        return 0
    if sys.argv[1:3] == ["auth", "status"]:
        logged_in = "ANTHROPIC_API_KEY" in os.environ
        write(json.dumps({"loggedIn": logged_in}))
        return 0 if logged_in else 1
    options = dict(arg.removeprefix("--").partition("=")[::2] for arg in sys.argv[1:])
    return Conversation(options).run(sys.stdin.read())


def say(**event: object) -> None:
    write(json.dumps(event))


def write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Conversation:
    def __init__(self, options: dict[str, str]) -> None:
        self.id = options.get("resume") or options["session-id"]
        self.file = Path(os.environ["CLAUDE_CONFIG_DIR"]) / f"{self.id}.json"
        self.resumes = "resume" in options
        self.model = {"sonnet": "claude-sonnet-5-5"}.get(options.get("model", ""), "claude-x")
        self.max_turns = int(options.get("max-turns", 0))
        self.max_usd = float(options.get("max-budget-usd", "inf"))
        self.spent_before = 0.0
        self.permissions = json.loads(Path(options["settings"]).read_text())["permissions"]
        self.retries = int(os.environ.get("CLAUDE_CODE_MAX_RETRIES", "10"))
        self.messages: list[dict[str, Any]] = []
        self.cost = 0.0
        self.turns = 0
        self.usage = {"input_tokens": 0, "output_tokens": 0}
        self.denials: list[dict[str, Any]] = []

    def run(self, prompt: str) -> int:
        if self.resumes:
            if not self.file.is_file():
                return self.end(errors=[f"No conversation found with session ID: {self.id}"])
            self.messages, self.cost = json.loads(self.file.read_text())
            self.spent_before = self.cost
        say(type="system", subtype="init", session_id=self.id, model=self.model)
        self.messages.append({"role": "user", "content": [{"type": "text", "text": prompt}]})
        return self.talk()

    def talk(self) -> int:
        while True:
            answer = self.request()
            if isinstance(answer, int):
                return answer
            self.turns += 1
            if self.cost - self.spent_before >= self.max_usd:
                error = f"Reached maximum budget (${self.max_usd:g})"
                how = "error_max_budget_usd"
                return self.end(errors=[error], subtype=how, reason="budget_exhausted")
            calls = [block for block in answer["content"] if block["type"] == "tool_use"]
            if not calls:
                return self.end(result=answer["content"][-1]["text"])
            results = [self.call(block) for block in calls]
            self.messages.append({"role": "user", "content": results})
            if self.turns == self.max_turns:
                error = f"Reached maximum number of turns ({self.max_turns})"
                return self.end(errors=[error], subtype="error_max_turns", reason="max_turns")

    def request(self) -> dict[str, Any] | int:
        body = {"model": self.model, "messages": self.messages, "max_tokens": 1000}
        for attempt in range(1, self.retries + 2):
            try:
                answer = self.post(body)
            except urllib.error.HTTPError as error:
                status, kind = error.code, json.load(error)["error"]
                retry = error.headers.get("x-should-retry") != "false" and status != 403
                text = f"API Error: {status} {kind['message']}"
            except OSError:
                status, retry, text = None, True, "API Error: Connection refused (ECONNREFUSED)"
            else:
                return self.hear(answer)
            if not retry or attempt > self.retries:
                return self.end(result=text, status=status, reason="api_error")
            self.wait(attempt, status)
        raise AssertionError

    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the scripted server's URL
            f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages?beta=true",
            data=json.dumps(body).encode(),
            headers={"content-type": "application/json", "x-api-key": "dummy-key"},
        )
        with urllib.request.urlopen(request) as response:  # noqa: S310
            answer: dict[str, Any] = json.load(response)
            return answer

    def wait(self, attempt: int, status: int | None) -> None:
        event: dict[str, object] = {
            "attempt": attempt,
            "max_retries": self.retries,
            "error_status": status,
        }
        delay_ms = 100 * 2**attempt
        say(type="system", subtype="api_retry", retry_delay_ms=delay_ms, error="error", **event)
        time.sleep(delay_ms / 1000)

    def hear(self, answer: dict[str, Any]) -> dict[str, Any]:
        self.messages.append({"role": "assistant", "content": answer["content"]})
        for name, price in zip(self.usage, USD_PER_TOKEN, strict=True):
            self.usage[name] += answer["usage"][name]
            self.cost += answer["usage"][name] * price
        for block in answer["content"]:
            say(
                type="assistant",
                session_id=self.id,
                message={**answer, "content": [block], "stop_reason": None},
            )
        return answer

    def call(self, block: dict[str, Any]) -> dict[str, Any]:
        arguments = block["input"]
        refusal = self.refusal(block["name"], arguments)
        if refusal:
            self.denials.append(
                {"tool_name": block["name"], "tool_use_id": block["id"], "tool_input": arguments}
            )
            text = refusal
        else:
            text = TOOLS[block["name"]](arguments)
        return {"type": "tool_result", "tool_use_id": block["id"], "content": text}

    def refusal(self, tool: str, arguments: dict[str, Any]) -> str | None:
        if tool == "Bash":
            allowed = f"Bash({arguments['command']})" in self.permissions["allow"]
            return None if allowed else "This command requires approval"
        if tool == "Read":
            wanted = str(Path(arguments["file_path"]).resolve())
            folders = [
                rule[6:-3] for rule in self.permissions["allow"] if rule.startswith("Read(/")
            ]
            within = wanted.startswith((str(Path.cwd()), *folders))
            return None if within else "This tool requires approval"
        if tool in ("Edit", "Write"):
            path = Path(arguments["file_path"])
            for rule in self.permissions["deny"]:
                glob = rule.removeprefix("Edit(").removesuffix(")")
                anchored = glob.startswith("//") and fnmatch.fnmatch(str(path), glob[1:])
                if anchored or fnmatch.fnmatch(path.name, glob):
                    return "File is in a directory that is denied by your permission settings."
        return None

    def end(
        self,
        *,
        result: str | None = None,
        errors: list[str] | None = None,
        subtype: str | None = None,
        status: int | None = None,
        reason: str = "completed",
    ) -> int:
        is_error = errors is not None or reason != "completed"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps([self.messages, self.cost]))
        event = {
            "subtype": subtype or ("error_during_execution" if errors else "success"),
            "is_error": is_error,
            "result": result,
            "errors": errors or [],
            "api_error_status": status,
            "terminal_reason": reason,
            "num_turns": self.turns,
            "total_cost_usd": self.cost,
            "usage": self.usage,
            "permission_denials": self.denials,
            "uuid": str(uuid.uuid4()),
        }
        say(type="result", session_id=self.id, **event)
        return 1 if is_error else 0


def _read(arguments: dict[str, Any]) -> str:
    return Path(arguments["file_path"]).read_text()


def _edit(arguments: dict[str, Any]) -> str:
    path = Path(arguments["file_path"])
    path.write_text(path.read_text().replace(arguments["old_string"], arguments["new_string"], 1))
    return f"The file {path} has been updated successfully."


def _write(arguments: dict[str, Any]) -> str:
    Path(arguments["file_path"]).write_text(arguments["content"])
    return "File created successfully"


def _bash(arguments: dict[str, Any]) -> str:
    done = subprocess.run(
        ["/bin/sh", "-c", arguments["command"]],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    return done.stdout + done.stderr


TOOLS = {"Read": _read, "Edit": _edit, "Write": _write, "Bash": _bash}

if __name__ == "__main__":
    sys.exit(main())

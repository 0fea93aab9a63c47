"""Torture of what atlas reads: reports, outputs, answers of models, the real Claude Code, git keys.

Each row takes a folder, a number of trials and a seed, and says what it came to.
"""

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from atlas_retry.model import Kind
from tests.goldens import regenerate
from tests.messages_server import (
    Answer,
    Block,
    Drop,
    Failure,
    Hang,
    Raw,
    Recorded,
    Reply,
    call,
    edit,
    events_of,
    serving,
)
from tests.projects import CALC, FIXED, UNITTEST, atlas, make_project
from tests.repositories import commit, repository, write
from tests.test_agents_claude_code import real_claude
from tests.test_git_keys import KEYS, configured, filled
from tests.torture import (
    Rig,
    Tally,
    configure,
    left_running,
    measured,
    signals_after,
    tell,
    unlike,
    unsound,
    working_in,
)

CLAUDE = b"_bundled/claude"
MAX_MB = 1200
MAX_S = 60.0


def _project(at: Path, **sections: object) -> Rig:
    rig = Rig(folder=at)
    root = repository(rig.root)
    (at / "home").mkdir()
    write(root, "calc.py", CALC)
    configure(root, **sections)
    commit(root)
    return rig


def _measured(rig: Rig, *arguments: str) -> tuple[str, list[str]]:
    """What a command said, and what of its end is no good: exit code, time, memory."""
    done = measured(rig, *arguments)
    faults = list(done.faults)
    faults += [f"{done.took_s:.0f} s"] if done.took_s > MAX_S else []
    faults += [f"{done.peak_mb} MB"] if done.peak_mb > MAX_MB else []
    return done.output, faults


def _laughs(kind: str) -> bytes:
    lines = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    subset = {
        "entities": f'<!ENTITY a0 "lol">{lines}',
        "quadratic": f'<!ENTITY a11 "{"x" * 100_000}">',
        "file": '<!ENTITY a11 SYSTEM "file:///etc/passwd">',
        "parameter": '<!ENTITY % p SYSTEM "file:///etc/passwd"> %p; <!ENTITY a11 "x">',
    }[kind]
    many = "&a11;" * (10_000 if kind == "quadratic" else 1)
    return (
        f'<?xml version="1.0"?><!DOCTYPE testsuite [{subset}]>'
        f'<testsuite><testcase name="t"><failure>{many}</failure></testcase></testsuite>'
    ).encode()


CASE = b'<testcase classname="c" name="n%d"><failure message="m">x</failure></testcase>'
BOMBS: Mapping[str, Callable[[], bytes]] = {
    "entities in entities": lambda: _laughs("entities"),
    "one long entity many times": lambda: _laughs("quadratic"),
    "a file as an entity": lambda: _laughs("file"),
    "a file as a parameter entity": lambda: _laughs("parameter"),
    "a million levels": lambda: b"<a>" * 1_000_000,
    "levels that are closed": lambda: b"<a>" * 500_000 + b"</a>" * 500_000,
    "a tag of 15 MB": lambda: b"<testsuite " + b'a="b" ' * 2_500_000 + b"/>",
    "attributes without end": lambda: (
        b"<t " + b" ".join(b'a%d="%d"' % (n, n) for n in range(300_000)) + b"/>"
    ),
    "100,000 failing cases": lambda: (
        b"<testsuite>" + b"".join(CASE % n for n in range(100_000)) + b"</testsuite>"
    ),
    "one message of 15 MB": lambda: (
        b'<testsuite><testcase name="t"><failure>%s</failure></testcase></testsuite>'
        % (b"E   assert 1 == 2\n" * 850_000)
    ),
    "UTF-16 without a mark": lambda: _laughs("entities").decode().encode("utf-16-le"),
    "not XML": lambda: bytes(range(256)) * 1000,
    "empty": lambda: b"",
}


def bombs(folder: Path, trials: int, seed: int) -> Tally:
    """Reports of a test gate that are made to exhaust whoever reads them; every bomb in turn."""
    tally = Tally()
    for number, (name, made) in enumerate([*BOMBS.items()][:trials]):
        run = f"cp ../bomb report.xml; exit {(seed + number) % 2}"
        gate = {"run": run, "report": {"format": "junit", "path": "report.xml"}}
        rig = _project(folder / f"bomb-{number}", validation={"test": [gate]})
        (rig.folder / "bomb").write_bytes(made())
        faults = []
        for arguments in (("validate", "--json"), ("validate", "--report", "junit=../junit.xml")):
            output, more = _measured(rig, *arguments)
            faults += more
            if "root:x:0" in output:
                faults.append("a file was read")
        tally.trials += 1
        tally.hit += 1
        tell(tally, rig, faults, name)
    return tally


PIECES = (
    b"\x1b]0;owned\x07", b"\x1b[2J\x1b[31m", b"\x9b31m", "\u202eevil\u202c\u2066".encode(),
    b"\0\0\0", b"\xff\xfe\xc3\x28\xed\xa0\x80", b"::error file=a.py,line=1::owned\n",
    b"::set-output name=x::y\n", b"]]><x/>", b"</system>", b"[" * 20_000, b'{"a":' * 20_000,
    b"x" * 400_000, b"\n" * 50_000, b"\r" * 2000, b"\x0c\x0b\x1c\x85", b"9" * 5000, b"a.py:" * 9000,
    b"a.py:99999999999999999999999:1: E1 x\n", b"a.py:-1:-1: E1 x\n", b"/dev/zero:1:1: E1 x\n",
    b"../../etc/passwd:1:1: E1 x\n", b"FAILED " * 9000, b"E   " + b"(" * 9000, b"<" * 9000,
    b'  File "/proc/self/mem", line 1, in x\n', b"%s%n{0}{x}${HOME}`id`\n", b"| a | b |\n|---|\n",
)  # fmt: skip
FORMATS = ("json", "junit", "sarif", "github", "gitlab", "markdown", "html")


def hostile_gates(kind: Kind, run: str) -> dict[str, object]:
    """A section `validation` with one gate; of the kind `custom` it has to say `max_retries`."""
    gate = {"name": "\x1b]0;x\x07", "run": run, "max_retries": 1}
    return {kind.value.replace("-", "_"): [gate]}


def outputs(folder: Path, trials: int, seed: int) -> Tally:
    """Outputs of real tools, torn and with pieces between them that are made to do harm."""
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    goldens = [regenerate.output_of(case) for case in regenerate.cases()]
    for number in range(trials):
        golden = dice.choice(goldens)
        lines = (golden.stdout + golden.stderr).encode().splitlines(keepends=True)
        for _ in range(dice.randint(1, 6)):
            lines.insert(dice.randint(0, len(lines)), dice.choice(PIECES))
        command = golden.command.partition("\n")[0].replace("'", "")
        gates = hostile_gates(golden.kind, f"cat ../output; : '{command}'; exit 1")
        rig = _project(folder / f"output-{number}", validation=gates)
        (rig.folder / "output").write_bytes(b"".join(lines[dice.randint(0, 3) :]))
        asked = [f"{one}=../report.{one}" for one in FORMATS]
        flags = [word for one in asked for word in ("--report", one)]
        faults = []
        for arguments in (("validate", "-v", *flags), ("prompt",), ("validate", "--json")):
            output, more = _measured(rig, *arguments)
            faults += more
        tally.trials += 1
        tally.hit += "atlas.report/1" in output
        faults += _illegible(rig.folder)
        tell(tally, rig, faults, f"{golden.command!r}")
    return tally


def _illegible(folder: Path) -> list[str]:
    from xml.etree.ElementTree import ParseError, parse

    faults = [f"no {one} report" for one in FORMATS if not (folder / f"report.{one}").exists()]
    try:
        parse(folder / "report.junit")  # noqa: S314 - it is our own
        for one in ("json", "sarif", "gitlab"):
            json.loads((folder / f"report.{one}").read_bytes())
    except (OSError, ValueError, ParseError) as error:
        faults.append(f"a report cannot be read: {error}")
    texts = [folder / f"report.{one}" for one in ("markdown", "github", "html")]
    harmful = [file.name for file in texts if file.exists() and b"\x1b" in file.read_bytes()]
    return faults + [f"{name} has control characters" for name in harmful]


def api(folder: Path, trials: int, seed: int) -> Tally:
    """A Messages API whose answers are torn, mixed up, endless, of no type that is known."""
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    made = _project(
        folder / "made",
        agent={"backend": "anthropic", "timeout": "15s", "idle_timeout": "3s"},
        retry={"flake_reruns": 0, "max_ai_retry_attempts": 2},
    )
    for number in range(trials):
        there = folder / f"api-{number}"
        shutil.copytree(made.folder, there, symlinks=True)
        with serving(*[lambda request: _broken(request, dice)] * 30) as server:
            key = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "dummy-key"}
            rig = Rig(folder=there, variables=key)
            before = rig.all_there()
            output, faults = _measured(rig, "retry", ".", "--ai-fix")
            tally.hit += bool(server.requests)
        tally.trials += 1
        undone, heard = rig.atlas("undo")
        faults += unsound(undone, heard) + unlike(rig, before, "after undo")
        tell(tally, rig, faults, f"{output}{heard}")
    return tally


def _broken(request: Recorded, dice: random.Random) -> Reply:
    files = [{"path": "calc.py", "action": "modify", "content": FIXED}]
    fix = call("submit_fix", success=True, diagnosis="x", files=files)
    raw = dice.choice(("{", '{"files": ' + "[" * 9000, '{"success": 1e999}', "null", "", "\0"))
    torn = Answer(blocks=(Block(tool="submit_fix", raw=raw),))
    stream = bytearray(
        b"".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            for event in events_of(request, dice.choice((fix, torn, call("read_file", path="/"))))
        )
    )
    for _ in range(dice.randint(0, 4)):
        at = dice.randrange(len(stream))
        dice.choice((_flip, _cut, _again, _stuff))(stream, at, dice)
    whole = dice.random()
    if whole < 0.1:
        return dice.choice((Drop(), Answer(blocks=fix.blocks, cut=True), torn))
    if whole < 0.2:
        document = dice.choice((b"", b"<html>", b"[" * 9000, b"\xff", b'{"error": 7}'))
        return Failure(status=dice.choice((200, 204, 302, 400, 418, 499)), document=document)
    return Raw(bytes(stream))


def _flip(stream: bytearray, at: int, dice: random.Random) -> None:
    stream[at] = dice.randrange(256)


def _cut(stream: bytearray, at: int, dice: random.Random) -> None:
    del stream[at : at + dice.choice((1, 10, 10_000))]
    stream += b"\n"


def _again(stream: bytearray, at: int, dice: random.Random) -> None:
    stream[at:at] = stream[: dice.randrange(len(stream))]


def _stuff(stream: bytearray, at: int, dice: random.Random) -> None:
    more = (
        b"data: {}\n\n",
        b'data: {"type": "new_thing"}\n\n',
        b"x" * 3_000_000,
        b"\0",
        b"data: -",
    )
    stream[at:at] = dice.choice(more)


def claude(folder: Path, trials: int, seed: int) -> Tally:
    """Kills and signals to atlas, kills of the real Claude Code, while it works."""
    program = real_claude()
    if not program:
        return Tally(notes=["not tried: the extra `claude` is not installed"])
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    for number in range(trials):
        at = folder / f"claude-{number}"
        rig = _project(at, agent={"backend": "claude-code", "path": program, "idle_timeout": "20s"})
        calc = rig.root / "calc.py"
        look = call("Read", file_path=str(calc))
        shell = call("Bash", command="rm -f src/a.py; touch made; (sleep 300; touch late) & wait")
        with serving(look, edit(calc, "a - b", "a * b"), shell, Hang()) as server:
            rig = Rig(folder=at, variables=_claude_variables(server.url, at))
            _killed(rig, number, dice, tally)
    return tally


def _claude_variables(url: str, at: Path) -> dict[str, str]:
    off = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER")
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "dummy-key",
        "CLAUDE_CONFIG_DIR": str(at / "home/claude"),
        **dict.fromkeys((*off, "DISABLE_ERROR_REPORTING"), "1"),
    }


def _killed(rig: Rig, number: int, dice: random.Random, tally: Tally) -> None:
    before = rig.all_there()
    child = rig.start("retry", ".", "--ai-fix")
    until_s = time.monotonic() + MAX_S
    while (
        not working_in(rig, program=CLAUDE) and child.poll() is None and time.monotonic() < until_s
    ):
        time.sleep(0.05)
    time.sleep(dice.uniform(0, 4))
    tally.trials += 1
    tally.hit += child.poll() is None
    who = ("atlas", "the agent", "both", "signals")[number % 4]
    if who in ("the agent", "both"):
        for pid in working_in(rig, program=CLAUDE):
            os.kill(pid, signal.SIGKILL)
    if who in ("atlas", "both"):
        child.kill()
    elif who == "signals":
        for wait_s, signum in signals_after(0.0, dice):
            time.sleep(wait_s)
            child.send_signal(signum)
    output, _ = child.communicate(timeout=MAX_S * 3)
    faults = unsound(child.returncode, output)
    undone, heard = rig.atlas("undo")
    faults += unsound(undone, heard) + unlike(rig, before, "after undo") + left_running(rig)
    tell(tally, rig, faults, f"{who} killed; exit {child.returncode}; {output}{heard}")


def git_keys(folder: Path, trials: int, seed: int) -> Tally:
    """Some of the git settings that make git execute something, and some commands of atlas."""
    dice, tally = random.Random(seed), Tally()  # noqa: S311 - a seed that can be repeated
    for number in range(trials):
        at = folder / f"keys-{number}"
        (at / "home").mkdir(parents=True)
        project = make_project(at, Rig(folder=at).environ)
        project.configure(validation={"test": [UNITTEST]})
        filled(project)
        project.attempt(1, {"calc.py": FIXED})
        names = dice.sample([*KEYS], dice.randint(1, len(KEYS)))
        where = dice.choice((project.root / ".git/config", at / "home/.gitconfig"))
        configured(at, where, {name: KEYS[name] for name in names})
        commands = [
            "validate",
            "prompt",
            "retry . --ai-fix",
            "undo",
            "status",
            "guard . --base HEAD",
        ]
        faults = []
        for line in dice.sample(commands, len(commands)):
            ended = atlas(project, *line.split())
            faults += unsound(ended.code, ended.out + ended.err)
            faults += [f"{line} ran {path.name}" for path in (at / "ran").iterdir()]
        tally.trials += 1
        tally.hit += 1
        tell(tally, Rig(folder=at), faults, ", ".join(names))
    return tally

"""What a configuration may not be: each wrong one is refused with its place, never replaced."""

import os
import re
import socket
import stat
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas_retry import config
from atlas_retry.errors import ConfigError
from tests.configurations import GATES, load, project, refusal, user_file

WRONG = {
    "unknown key": ("validation: {tset: [x]}", "1:14", "unknown key validation.tset", "test"),
    "unknown section": ("retri: {}", "1:1", "unknown key retri", "did you mean retry?"),
    "another spelling, misspelt": (
        "validation: {test_comands: [x]}",
        "1:14",
        "did you mean test_commands?",
    ),
    "a key in the wrong section": ("lint: [x]", "1:1", "did you mean validation.lint?"),
    "unknown key of a gate": ("validation: {lint: [{run: x, requierd: no}]}", "1:30", "required?"),
    "the command of a gate": (
        "validation: {lint: [{run: x, command: y}]}",
        "1:30",
        "lint[0].command; did you mean run?",
    ),
    "the command of a quality gate": (
        "quality_gates: [{name: x, command: y, run: z}]",
        "1:39",
        "did you mean command?",
    ),
    "unknown key with nothing near": ("guard: {zzz: 1}", "1:9", "known here: mode, protect, allow"),
    "unknown key beside a known spelling": ("executor: {x: 1}", "1:1", "unknown key executor"),
    "text for a list": (
        'validation: {test: "pytest"}',
        "1:20",
        """expected a list, found 'pytest'; write test: ["pytest"]""",
    ),
    "number for a command": ("validation: {test: [3]}", "1:21", "expected a command", "found 3"),
    "nothing for a list": ("validation:\n  lint:\n", "2:8", "expected a list, found nothing"),
    "nothing for a section": ("retry:\n", "1:7", "expected a mapping, found nothing"),
    "text for a switch": (
        "validation: {parallel: 'yes'}",
        "1:24",
        "expected true or false, found 'yes'",
    ),
    "number for text": ("agent: {path: 3}", "1:15", "agent.path: expected text, found 3"),
    "switch for text": ("agent: {path: true}", "1:15", "expected text, found true"),
    "number in a variable": (
        "validation: {test: [{run: a, env: {PORT: 80}}]}",
        "1:42",
        "env.PORT: expected text, found 80",
    ),
    "name of a variable": (
        "validation: {test: [{run: a, env: {A-B: x}}]}",
        "1:41",
        "environment variable",
    ),
    "empty command": ("validation: {lint: ['']}", "1:21", "expected a command", "found ''"),
    "blank command": ("validation: {lint: [{run: '  '}]}", "1:27", "expected a command"),
    "NUL in a command": ('validation: {lint: ["a\\0b"]}', "1:21", "without a NUL byte"),
    "newline in a command": ("validation:\n  lint:\n  - |\n    a\n    b", "3:5", "of one line"),
    "endless command": (f"validation: {{lint: [{'x' * 100_001}]}}", "1:21", "at most 100000"),
    "gate without a command": ("validation: {lint: [{name: x}]}", "1:21", "run is missing"),
    "custom without max_retries": ("validation: {custom: [{run: x}]}", "1:23", "max_retries is"),
    "custom as text": ("validation: {custom: [x]}", "1:23", "expected a mapping"),
    "review without a prompt": ("validation: {review: [{name: x}]}", "1:23", "prompt is missing"),
    "quality gate without a name": ("quality_gates: [{command: x}]", "1:17", "name is missing"),
    "absolute cwd": ("validation: {lint: [{run: x, cwd: /}]}", "1:35", "inside the project"),
    "home as cwd": ("validation: {lint: [{run: x, cwd: '~'}]}", "1:35", "inside the project"),
    "cwd outside": ("validation: {lint: [{run: x, cwd: a/../..}]}", "1:35", "without .."),
    "missing cwd": ("validation: {lint: [{run: x, cwd: nope}]}", "1:35", "nope is not a folder"),
    "unknown parser": ("validation: {lint: [{run: x, parser: mipy}]}", "1:38", "did you mean mypy"),
    "unknown report": (
        "validation: {lint: [{run: x, report: {format: junti, path: a}}]}",
        "1:47",
        "did you mean junit?",
    ),
    "parser with nothing near": ("validation: {lint: [{run: x, parser: zzz}]}", "1:38", "known: "),
    "attempts as text": ("retry: {max_ai_retry_attempts: '3'}", "1:32", "from 0 to 100, found '3'"),
    "attempts as a switch": ("retry: {max_ai_retry_attempts: true}", "1:32", "found true"),
    "half attempts": ("retry: {max_ai_retry_attempts: 2.5}", "1:32", "whole number", "found 2.5"),
    "negative attempts": ("retry: {max_ai_retry_attempts: -1}", "1:32", "from 0 to 100, found -1"),
    "too many attempts": ("retry: {max_ai_retry_attempts: 1000000000}", "1:32", "from 0 to 100"),
    "no number of re-runs": ("retry: {flake_reruns: null}", "1:23", "from 0 to 10, found nothing"),
    "a number too long": (f"retry: {{flake_reruns: {'9' * 5000}}}", "1:23", "looks like a number"),
    "no amount": ("retry: {max_cost_usd: .nan}", "1:23", "from 0 to 100000, found nan"),
    "endless amount": ("retry: {max_minutes: .inf}", "1:22", "from 0 to 1440, found inf"),
    "negative amount": ("retry: {max_cost_usd: -0.5}", "1:23", "from 0 to 100000"),
    "unknown word": ("retry: {on_exhausted: bset}", "1:23", "'best', 'keep' or 'restore'"),
    "timeout 0": ("validation: {timeout: 0}", "1:23", "a duration such as 90", "found 0"),
    "negative timeout": ("agent: {timeout: -5}", "1:18", "a duration"),
    "timeout nan": ("agent: {timeout: .nan}", "1:18", "a duration"),
    "timeout inf": ("agent: {timeout: .inf}", "1:18", "a duration"),
    "timeout over a day": ("agent: {timeout: 24h1s}", "1:18", "at most 24h, found '24h1s'"),
    "timeout in words": ("agent: {timeout: ten}", "1:18", "a duration"),
    "timeout empty": ("agent: {timeout: ''}", "1:18", "a duration"),
    "timeout as a switch": ("agent: {timeout: true}", "1:18", "a duration"),
    "jobs 0": ("validation: {jobs: 0}", "1:20", "auto or a whole number from 1 to 256"),
    "jobs as a switch": ("validation: {jobs: true}", "1:20", "auto or a whole number"),
    "unknown agent": ("agent: {backend: claude}", "1:18", "claude-code, anthropic"),
    "model with a command in it": ("agent: {models: ['a; rm -rf /']}", "1:18", "name of a model"),
    "model as an option": ("agent: {models: [--debug]}", "1:18", "name of a model"),
    "no models": ("agent: {models: []}", "1:17", "at least one item"),
    "unknown session": ("agent: {session: [old]}", "1:19", "'new' or 'resume'"),
    "unknown effort": ("agent: {effort: [huge]}", "1:18", "'low', 'medium', 'high'"),
    "command agent without one": ("agent: {backend: command}", "1:18", "needs agent.command"),
    "absolute glob": ("guard: {allow: [/etc/**]}", "1:17", "relative to the root"),
    "glob out of the workspace": ("guard: {protect: [../x]}", "1:19", "relative to the root"),
    "no expression": ("parsers: {a: '('}", "1:14", "a regular expression"),
    "expression without groups": ("parsers: {a: 'x'}", "1:14", "named groups"),
    "expression with another group": ("parsers: {a: '(?P<x>y)'}", "1:14", "named groups"),
    "words for a gate that is not there": (
        "prompt: {gates: {lin: x}}",
        "1:23",
        "did you mean lint?",
    ),
    "threshold over the window": (
        "batch: {cascade_detection: {threshold: 9}}",
        "1:40",
        "more than the window_size of 5",
    ),
    "another version": ("version: 2", "1:10", "expected 1, found 2"),
    "a switch as version": ("version: true", "1:10", "expected 1, found true"),
    "said twice": ("retry: {flake_reruns: 1, flake_reruns: 2}", "1:26", "first in line 1"),
    "said in two spellings": (
        "validation:\n  lint: [a]\n  lint_commands: [b]",
        "3:3",
        "validation.lint_commands sets the same as validation.lint in line 2",
    ),
    "said in two other spellings": (
        "validation:\n  max_ai_retry_attempts: 1\nexecutor:\n  quality_gate_max_retries: 1",
        "4:3",
        "executor.quality_gate_max_retries sets the same",
    ),
    "no mapping": ("- a\n- b", "1:1", "a mapping of keys to values"),
    "a scalar": ("hello", "1:1", "a mapping of keys to values"),
    "a tab": ("validation:\n\tlint: [a]", "2:1", "a tab: YAML needs spaces"),
    "no YAML": ("a: [1, 2", "1:9", "not valid YAML"),
    "two documents": ("a: 1\n---\nb: 2", "2:1", "another document"),
    "an anchor that is not there": ("a: *b", "1:4", "undefined alias"),
    "a Python object": ("retry: !!python/object/apply:os.system ['true']", "1:8", "the tag"),
    "a Python name": ("agent: {path: !!python/name:os.system ''}", "1:15", "the tag"),
    "binary": ("agent: {path: !!binary aGk=}", "1:15", "the tag"),
    "a key that is no text": ("? [a]\n: b", "1:3", "a key must be text"),
    "a merge of nothing": ("retry:\n  <<: 3", "2:7", "<< takes a mapping"),
    "a control character": ("retry: {}\na: \x07", "2:4", "U+0007"),
    "a merge of itself": ("retry: &a {<<: *a}", "1:8", "merges a mapping into itself"),
    "a merge of what merges it": (
        "retry: &a {<<: [{k: &b {<<: *a}}]}",
        "1:17",
        "merges a mapping into itself",
    ),
    "an anchor in itself": ("retry: &a {on_failure: *a}", "1:8", "nested deeper than 64"),
    "too deep": ("a: " + "[" * 500, "1:67", "nested deeper than 64"),
    "too deep for the parser": ("a: " + "[" * 100_000, "1:", "nest"),
    "too many values": ("a: [" + "x," * 30_000 + "]", "1:", "more than 20000 values"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "place", "phrases"), [
    pytest.param(text, place, phrases, id=name) for name, (text, place, *phrases) in WRONG.items()
])  # fmt: skip
def test_an_invalid_value_is_refused_with_place_and_expectation(
    tmp_path: Path, text: str, place: str, phrases: list[str]
) -> None:
    root = project(tmp_path, text)
    error = refusal(root)
    file, _, rest = str(error).partition(".yaml:")
    assert f"{file}.yaml" == str(root / ".atlas/config.yaml")
    assert rest.startswith(place)
    for words in phrases:
        assert words in error.message
    line = text.splitlines()[(error.place.line or 1) - 1].rstrip()
    assert str(error).splitlines()[1] == f"    {line[:200]}".replace("\x07", "")
    assert error.exit_code == 2


RECORD = Path(__file__).parent / "goldens" / "config_refusals.txt"
"""Every message of this table, whole; `python -m tests.test_config_refusals` writes it anew."""


def _record() -> str:
    """What each wrong configuration is refused with; without ends of lines that grow with keys."""
    shown = []
    for name, (text, *_) in WRONG.items():
        try:
            config.load_text(text.encode(), "config.yaml")
        except ConfigError as error:
            lines = [re.sub("; known.*", "", line)[:240] for line in str(error).splitlines()]
            shown.append(f"# {name}\n" + "\n".join(lines))
    return "\n\n".join(shown) + "\n"


def test_refused_configurations_are_refused_in_the_recorded_words() -> None:
    assert _record() == RECORD.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n", "validation: {test: []}", "validation: {}", "version: 1"]
)
def test_a_configuration_without_gates_is_refused(tmp_path: Path, text: str) -> None:
    error = refusal(project(tmp_path, text))
    assert "nothing to validate" in error.message
    assert error.remedy


def test_all_errors_are_reported_at_once_in_order(tmp_path: Path) -> None:
    text = "retry: {flake_reruns: x, max_minutes: x}\nguard: {mode: x, mode: y}\nx: 1\n"
    error = refusal(project(tmp_path, text))
    lines = [line.partition(".yaml:")[2] for line in str(error).splitlines()[::2]]
    assert [line.split(": ")[0] for line in lines] == ["1:23", "1:39", "2:18", "2:24", "3:1"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ATLAS_RETYR__FLAKE_RERUNS", "1", "did you mean retry?"),
        ("ATLAS_RETRY__FLAKE_RERUN", "1", "did you mean flake_reruns?"),
        ("ATLAS_LINT", "1", "did you mean validation.lint?"),
        ("ATLAS_RETRY__FLAKE_RERUNS", "many", "from 0 to 10, found 'many'"),
        ("ATLAS_RETRY__FLAKE_RERUNS", "", "found ''"),
        ("ATLAS_AGENT__MODELS", "opus", "expected JSON"),
        ("ATLAS_RETRY", "{", "expected JSON"),
        ("ATLAS_RETRY", "3", "expected a mapping"),
        ("ATLAS_", "3", "unknown key"),
        ("ATLAS___", "3", "unknown key"),
        ("ATLAS_RETRY__FLAKE_RERUNS__X", "3", "flake_reruns"),
        ("ATLAS_AGENT", "null", "expected a mapping, found nothing"),
        ("ATLAS_RETRY", "[" * 100_000, "expected JSON"),
        ("ATLAS_RETRY__STRATEGY", '[{"ask": "x"}]', "retry.strategy[0].ask: expected 'fix'"),
        ("ATLAS_VALIDATION", '{"lint": [{"run": 3}]}', "validation.lint[0].run: expected a"),
        ("ATLAS_VALIDATION__LINT__0", "x", "expected a list, found a mapping"),
        ("ATLAS_BUDGETS__WEEK", "3", "expected 'day', 'month'"),
        ("ATLAS_AGENT__TIMEOUT", "\udcff", "expected a duration"),
    ],
)
def test_an_invalid_variable_is_refused_by_name(
    tmp_path: Path, name: str, value: str, message: str
) -> None:
    error = refusal(project(tmp_path), {name: value})
    assert str(error).startswith(f"{name}: ")
    assert message in error.message


def test_an_invalid_flag_is_refused_as_command_line_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^the command line: batch\.jobs: expected a whole"):
        load(project(tmp_path), None, {"batch.jobs": 0})


def test_an_error_in_the_user_file_is_reported_with_its_place(tmp_path: Path) -> None:
    file = user_file(tmp_path, "\nbatch: {jobs: 0}")
    assert str(refusal(project(tmp_path))).startswith(f"{file}:2:15: batch.jobs: expected")


def test_an_error_in_a_merged_list_names_the_file_it_came_from(tmp_path: Path) -> None:
    user_file(tmp_path, "validation: {lint: [{run: x}, {run: y}]}")
    root = project(tmp_path, "validation:\n  lint: ['']")
    assert str(refusal(root)).startswith(f"{root}/.atlas/config.yaml:2:10: ")


# --- what a file may be ----------------------------------------------------------------------


def test_bytes_that_are_not_utf8_are_refused_with_their_offset(tmp_path: Path) -> None:
    error = refusal(project(tmp_path, GATES.encode() + b"# caf\xe9\n"))
    assert "byte 0xe9 at offset 34" in error.message
    assert (error.place.line, error.place.column) == (2, 6)


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbf" + GATES.encode(), GATES.replace(" {", "\n  ").replace("}", "").encode()],
)
def test_byte_order_mark_and_windows_line_endings_are_accepted(
    tmp_path: Path, content: bytes
) -> None:
    assert load(project(tmp_path, content.replace(b"\n", b"\r\n"))).gates


def test_windows_line_endings_count_as_one_line(tmp_path: Path) -> None:
    error = refusal(project(tmp_path, b"version: 1\r\n\r\nx: 1\r\n"))
    assert (error.place.line, error.place.text) == (3, "x: 1")


def test_a_file_over_a_mebibyte_is_refused(tmp_path: Path) -> None:
    assert "over 1 MiB" in refusal(project(tmp_path, b"#" * ((1 << 20) + 1))).message


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    bound = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's name has at most 107 bytes
    try:
        bound.bind(path.name)
    finally:
        os.chdir(here)
        bound.close()


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _outside(path: Path) -> None:
    target = path.parents[2] / "elsewhere.yaml"
    target.write_text(GATES)
    path.symlink_to(target)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.mkdir, "a directory"),
        (_fifo, "a FIFO"),
        (_socket, "cannot be read"),
        (lambda path: path.symlink_to("/dev/zero"), "out of the repository"),
        (lambda path: path.symlink_to("nowhere"), "a broken link"),
        (_loop, "a broken link"),
        (_outside, "out of the repository"),
    ],
    ids=["directory", "fifo", "socket", "device", "dangling", "loop", "outside"],
)
def test_a_configuration_that_is_not_a_repository_file_is_refused(
    tmp_path: Path, make: object, message: str
) -> None:
    root = project(tmp_path)
    path = root / ".atlas" / "config.yaml"
    path.unlink()
    assert callable(make)
    make(path)
    error = refusal(root)
    assert message in error.message
    assert error.place.source == str(path)


def test_the_user_file_may_be_a_link_but_not_a_device(tmp_path: Path) -> None:
    file = user_file(tmp_path, "")
    file.rename(tmp_path / "dotfile.yaml")
    file.symlink_to(tmp_path / "dotfile.yaml")
    assert load(project(tmp_path)).gates
    file.unlink()
    file.symlink_to("/dev/zero")
    assert "a device" in refusal(project(tmp_path)).message


def test_a_link_inside_the_repository_is_followed(tmp_path: Path) -> None:
    root = project(tmp_path, name="shared/atlas.yaml")
    (root / "atlas.yaml").symlink_to("shared/atlas.yaml")
    assert load(root).gates


def test_a_cwd_that_is_a_link_out_of_the_repository_is_refused(tmp_path: Path) -> None:
    root = project(tmp_path, "validation: {lint: [{run: x, cwd: out}]}")
    (root / "out").symlink_to(tmp_path)
    assert "out is not a folder of the repository" in refusal(root).message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / ".atlas/config.yaml").chmod(stat.S_IWUSR)
    assert "Permission denied" in refusal(root).message


# --- hostile files ---------------------------------------------------------------------------

LAUGHS = "a0: &a0 [lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
MERGES = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    "text",
    [LAUGHS, MERGES, "a: " + "{b: " * 5000, "? " * 100_000, "- " * 100_000, "a: [" + "x," * 30_000],
    ids=["laughs", "merges", "mappings", "keys", "lists", "long"],
)  # fmt: skip
def test_a_yaml_bomb_is_refused_quickly(tmp_path: Path, text: str) -> None:
    started = time.process_time()
    assert refusal(project(tmp_path, text)).message.startswith(("more than", "nested deeper"))
    assert time.process_time() - started < 10  # measured 0.02-0.2 s; unfolded it is 10^9 values


def test_ordinary_aliases_and_merges_are_accepted(tmp_path: Path) -> None:
    text = """
validation:
  lint:
    - &base {run: a, timeout: 1m, required: false}
    - {<<: *base, run: b}
"""
    gates = load(project(tmp_path, text)).gates
    assert [(gate.run, gate.timeout_s, gate.required) for gate in gates] == [
        ("a", 60, False),
        ("b", 60, False),
    ]


def test_an_error_never_shows_secrets_or_control_characters(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    error = refusal(project(tmp_path, f"agnet: {{path: {token}}} # \u202eeman\n"))
    assert token not in str(error)
    assert "\u202e" not in str(error)
    error = refusal(project(tmp_path, f"agent: {{timeout: {token}}}\n"))
    assert token not in str(error)


SNIPPETS = (
    st.sampled_from(["validation", "lint", "test", "retry", "agent", "run", "timeout", "name"])
    | st.sampled_from(["5m", "true", "~", "null", "3", "*a", "<<", "!!", "%", "@", "---", "#"])
    | st.sampled_from([": ", "\n", "  ", "- ", ", ", "&a ", "? ", "\t", "\ufeff", "\x85", "\r"])
    | st.sampled_from(list("[]{}'\"|>"))
)


@given(st.lists(SNIPPETS | st.text(max_size=3), max_size=30).map("".join))
@settings(max_examples=400)
def test_any_text_is_either_loaded_or_refused(text: str) -> None:
    with suppress(ConfigError):
        config.load_text(text.encode("utf-8", "surrogatepass"), "fuzz")


if __name__ == "__main__":
    RECORD.write_text(_record(), encoding="utf-8")

"""Cuts a shell script into the commands that CI runs one after the other. Starts nothing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from posixpath import normpath
from typing import TYPE_CHECKING

from msgspec import Struct, field

from atlas_retry.patterns import regex, words

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

COMPOUND = {
    "if_statement", "for_statement", "c_style_for_statement", "while_statement", "case_statement",
    "subshell", "compound_statement", "function_definition",
}  # fmt: skip
LEFT_RUNNING = "CI leaves it running beside the next lines"
ASSIGNMENTS = ("variable_assignment", "variable_assignments", "declaration_command")
EVERYWHERE = words("HOME PATH PWD OLDPWD USER SHELL TMPDIR LANG UID RANDOM HOSTNAME IFS CI")
"""Variables that have a value on every machine."""
_MOVES = regex(r"(?:(?:cd|pushd)\s+[\"']?([^\s\"';&|]+)[\"']?|popd)(?:\s*>\s*/dev/null)?")
_PLAIN = regex(r"[^$`\"'\\]*|'[^']*'|\"[^$`\"\\]*\"")
_KEPT = regex(r"""(?:echo|printf) ["']?(\w+)=(.*?)["']? >>? ?["']?\$\{?GITHUB_ENV\}?["']?$""")
"""A line that sets a variable for the later steps of a job."""
_TEE = regex(r"\s+(?:\|\s*tee\s.*|\|\|\s*\w+=\$\?)$", re.DOTALL)
"""Suffix that saves a command's output or its exit code."""


class ShellCommand(Struct, frozen=True, kw_only=True):
    """One command, or one loop or condition, of a script."""

    text: str
    """The line to run, with the script's own variables that it needs set in front of it."""
    cwd: str
    env: Mapping[str, str]
    inner: tuple[str, ...]
    """The simple commands in it; itself, if it is no loop or condition."""
    unset: tuple[str, ...] = ()
    """Variables that it reads and nobody sets."""
    left_out: str = ""
    """Why it is no check: the script goes on while it runs."""


class _ShellState(Struct, kw_only=True):
    """The state of the shell between two commands."""

    cwd: str
    env: dict[str, str]
    set_here: dict[str, "_Setting"] = field(default_factory=dict)
    """What sets a variable or a function, by its name."""

    def keep(self, text: str) -> None:
        """Set the variable that a line sets for later steps; drop it if its value is unknown."""
        if kept := kept_by(text):
            self.env.pop(kept[0], None)
            self.env |= {kept[0]: kept[1]} if "$" not in kept[1] else {}


class _Setting(Struct, frozen=True, kw_only=True):
    """A command that sets something for later ones, which run together with it."""

    text: str
    inner: tuple[str, ...] = ()
    is_exported: bool = False
    """Whether programs read it: every later line needs it."""


def commands_of(script: str, cwd: str, env: Mapping[str, str]) -> Iterator[ShellCommand]:
    """The commands of a script in their order, each with the folder and variables it runs in."""
    running = _ShellState(cwd=cwd, env=dict(env))
    # tree-sitter needs the last line break for a here-document
    nodes = [*_steps(_parser().parse(f"{script.strip()}\n".encode()).root_node)]
    for number, node in enumerate(nodes):
        text = _text(node)
        if moved := _MOVES.fullmatch(text):
            running.cwd = normpath(f"{running.cwd}/{moved[1]}") if moved[1] else cwd
        elif node.type in ASSIGNMENTS:
            _assign(node, text, running)
        elif names := _set_for(node, nodes[number + 1 :]):
            setting = _Setting(text=text, inner=_inner(node))
            running.set_here |= dict.fromkeys(names, setting)
        elif text:
            yield _command(node, _TEE.sub("", text), running)
            running.keep(text)


def _set_for(node: "Node", later: Sequence["Node"]) -> set[str]:
    """What a loop, a condition or a function sets for later commands."""
    if node.type not in COMPOUND:
        return set()
    return _set_by(node).intersection(chain.from_iterable(map(_read_by, later)))


def kept_by(text: str) -> tuple[str, str] | None:
    """Name and value of the variable that a line sets for the later steps of a job on GitHub."""
    match = _KEPT.fullmatch(text)
    return (match[1], match[2]) if match else None


@cache
def _parser() -> "Parser":
    import tree_sitter_bash  # start-up
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _steps(node: "Node") -> Iterator["Node"]:
    """The parts that run one after the other: `a && b` fails where one of the two does."""
    is_chain = node.type == "list" and all(child.type != "||" for child in node.children)
    if node.type == "program" or is_chain:
        for child in node.named_children:
            yield from _steps(child)
    elif node.type != "comment":
        yield node


def _text(node: "Node") -> str:
    text = (node.text or b"").decode()
    joined = re.sub(r"\\\n\s*", " ", text)
    is_plain = "\n" not in joined and not re.search(r"['\"]", joined)
    return " ".join(joined.split()) if is_plain else joined.strip()


def _assign(node: "Node", text: str, running: _ShellState) -> None:
    is_exported = node.type == "declaration_command" and text.startswith("export")
    for each in _within(node, "variable_assignment"):
        name, _, value = _text(each).partition("=")
        if _PLAIN.fullmatch(value):
            running.env[name] = value.strip("'\"")
        else:
            line = f"export {name}={value}" if is_exported else _text(each)
            running.set_here[name] = _Setting(text=line, is_exported=is_exported)


def _command(node: "Node", text: str, running: _ShellState) -> ShellCommand:
    # a program that a variable names
    text = re.sub(r"^\$\{?(\w+)\}?", lambda name: running.env.get(name[1]) or name[0], text)
    read = [name for name in dict.fromkeys(_read_by(node)) if name in text]
    exported = [each for each in running.set_here.values() if each.is_exported]
    set_before = (running.set_here[name] for name in read if name in running.set_here)
    needed = dict.fromkeys((*exported, *set_before))
    known = EVERYWHERE | running.set_here.keys() | running.env.keys()
    unknown = [name for name in read if name not in known]
    inner = _inner(node) if node.type in COMPOUND else (text,)
    return ShellCommand(
        text=" && ".join((*(each.text for each in needed), text)),
        cwd=running.cwd,
        env=dict(running.env),
        inner=tuple(chain(*(each.inner for each in needed), inner)),
        left_out=LEFT_RUNNING if node.next_sibling and node.next_sibling.type == "&" else "",
        unset=tuple(
            name
            for name in (*unknown, *re.findall(r"\$\{?(\w+)", running.cwd))
            if re.search(rf"\$\{{?{re.escape(name)}\b", f"{text} {running.cwd}")
        ),
    )


def _inner(node: "Node") -> tuple[str, ...]:
    return tuple(_text(each) for each in _within(node, "command"))


def _read_by(node: "Node") -> Iterator[str]:
    """The variables that a command reads and does not set itself, and the programs it starts."""
    own = _set_by(node)
    for each in (*_within(node, "simple_expansion"), *_within(node, "expansion")):
        names = [*_within(each, "variable_name")]
        has_default = re.match(r"\$\{\w+:?[-=+]", _text(each))
        if names and not has_default and _text(names[0]) not in own:
            yield _text(names[0])
    yield from map(_text, _within(node, "command_name"))


def _set_by(node: "Node") -> set[str]:
    """The variables and functions that a command sets."""
    kinds = ("variable_assignment", "for_statement", "function_definition")
    setting = chain.from_iterable(_within(node, kind) for kind in kinds)
    own = {_text(each.named_children[0]) for each in setting}
    for command in _within(node, "command"):
        name, *words = _text(command).split() or [""]
        own |= {*words} if name == "read" else set()
    return own


def _within(node: "Node", kind: str) -> Iterator["Node"]:
    """Every node of a kind, the node itself included, in order."""
    if node.type == kind:
        yield node
    for child in node.named_children:
        yield from _within(child, kind)

"""Lines of shell with what fresh functions and yes-or-no variables stand for put in. Pure."""

import re
from collections.abc import Iterator, Mapping

Lines = list[tuple[int, str]]
_FUNCTION = re.compile(
    r"^(?:function[ \t]+)?([\w-]+)[ \t]*\(\)[ \t]*\{(?:[ \t]*\n(.*?)^\}|(.*?);?[ \t]*\})[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_CHOICE = re.compile(
    r"^(?P<ask>[\w./-][^|&;]*?) && (?P<name>\w+)=(?P<yes>\w+) \|\| (?P=name)=(?P<no>\w+)$"
)
_ANSWER = re.compile(r"^if (?P<ask>[^|&;]+); then echo (?P<yes>\w+); else echo (?P<no>\w+); fi$")
_DECIDES = re.compile(r"^(if|case|for|while|until|return|exit|local|shift|set|trap|eval|:)\b|^:")
_WORD = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s\"']+")


def fresh_functions(before: str, after: str) -> Mapping[str, tuple[str, ...]]:
    """Functions with names that the script did not know, as the plain commands of their bodies."""
    found: dict[str, tuple[str, ...]] = {}
    for name, block, one_line in _FUNCTION.findall(after):
        joined = re.sub(r"[;\s]*\n\s*", "; ", (block or one_line).strip())
        joined = re.sub(r"\b(then|else); ", r"\1 ", joined)
        answer = _ANSWER.match(joined)
        said = (_asked(answer),) if answer else tuple(part for part in joined.split("; ") if part)
        if not re.search(rf"\b{re.escape(name)}\b", before) and not any(map(_DECIDES.match, said)):
            found[name] = () if name in found else said
    return {name: said for name, said in found.items() if said}


def _asked(found: re.Match[str]) -> str:
    return f"{found['ask'].strip()} ? {found['yes']} : {found['no']}"


def inlined(text: str, functions: Mapping[str, tuple[str, ...]]) -> Lines:
    """Numbered lines of a script, calls of these functions replaced by what they run."""
    return list(_answers_put_in(_calls_put_in(text, functions)))


def _calls_put_in(text: str, functions: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[int, str]]:
    names = "|".join(map(re.escape, functions)) or r"(?!)"
    within = re.compile(rf"\$\(({names})((?: [^()]*)?)\)")
    for number, line in enumerate(text.splitlines(), 1):
        told = within.sub(lambda m: _one(functions[m[1]], m[2], m[0]), line)
        call = re.match(rf"^\s*({names})((?: [^|&;<>]*)?)$", told)
        bodies = functions[call[1]] if call else ()
        yield from ((number, _filled(body, call[2])) for body in bodies if call)
        if not call:
            yield number, told


def _one(bodies: tuple[str, ...], arguments: str, call: str) -> str:
    return f"$({_filled(bodies[0], arguments)})" if len(bodies) == 1 else call


def _filled(body: str, arguments: str) -> str:
    given = _WORD.findall(arguments)
    return re.sub(
        r"\"\$\{?([1-9])\}?\"|\$\{?([1-9])\}?",
        lambda m: given[int(m[1] or m[2]) - 1] if int(m[1] or m[2]) <= len(given) else m[0],
        body,
    )


def _answers_put_in(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """`ask && r=yes || r=no` said where `$r` is looked at, until `r` is something else."""
    known: dict[str, str] = {}
    for number, line in lines:
        found = _CHOICE.match(line.strip())
        if found:
            known[found["name"]] = _asked(found)
            continue
        told = line
        for name, asked in known.items():
            parts = re.split(rf"\"\${name}\"|\$\{{?{name}\b\}}?", told)
            told = f"$({asked})".join(parts)
        for name in re.findall(r"\b(\w+)=", told):
            known.pop(name, None)
        yield number, told


_ANEW = (
    (r"\begrep ", "grep -E "),
    (r"\bfgrep ", "grep -F "),
    (r"^(for \w+ in )ls (?=[\w./]*\*[\w./*]*(;|$))", r"\1"),
    (r"\[ ! -z (?=\$?\w+ \])", "[ -n "),
    (r"\[ ! -n (?=\$?\w+ \])", "[ -z "),
    (r"\bread (?!-)", "read -r "),
    (r"^(cd [\w./$]+) \|\| (exit|return)( [1-9]\d*)?$", r"\1"),
    (r"\bwhich (?=[\w-]+( |$))", "command -v "),
)
"""What ShellCheck asks to say otherwise: SC2196, SC2197, SC2045, SC2236, SC2162, SC2164, SC2230."""


def plain(command: str) -> str:
    """A command as formatters lay it out, and in the one spelling that linters leave alone."""
    command = re.sub(r"; (then|do)$", "", command)
    for old, new in _ANEW:
        command = re.sub(old, new, command)
    return re.sub(r"^((?:if |while )?\[ [^]]*?) == ", r"\1 = ", command)

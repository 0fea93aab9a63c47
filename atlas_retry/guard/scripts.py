"""Rules on what runs the checks: make, package scripts, shell, CI, hooks. Reads, runs nothing."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from atlas_retry.guard import makeform, places, scratch, shellplaces
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.checkscripts import own_checks
from atlas_retry.guard.documents import flat, parse
from atlas_retry.guard.executed import check_scripts
from atlas_retry.guard.shellform import fresh_functions, inlined, plain

_MAKE = re.compile(
    r"(^|/)(GNU)?[Mm]akefile(\.\w+)?$|\.mk$|(^|/)\.?[Jj]ustfile$|(^|/)Taskfile\.ya?ml$"
)
_GIVES_UP = re.compile(
    r"\|\|\s*(true|:|exit\s+0|echo\b.*|/bin/true)|;\s*(true|exit\s+0|:)\s*$|^\s*-\s*[a-z$@]|\bset\s\+e\b"
    r"|\bexit\s+(0|\$\(\(0\)\))\b|\btrap\b.*\bexit\b|\btrap\b.*\bEXIT\b|--no-verify\b|\bexec\s+true\b|2>&1\s*\|\s*(cat|tee|true)"
    r"|--(exit-zero|passWithNoTests|pass-with-no-tests|no-fail|exit-0)\b|\bSKIP=|\breturn\s+0\b"
    r"|\bignoreFailures\b.*\btrue\b|\bexcludeTest\w*\(|\benabled\s*=\s*false\b|\bonlyIf\b"
    r"|--issues-exit-code[= ]0|success_codes"
    r"|ignore_errors?|ignore_outcome|\ballow_failure\b|^\s*@?(true|:)\s*$"
)
_MAKE_VARIABLES = re.compile(
    r"^\s*(override\s+|export\s+)?(SHELL|\.SHELLFLAGS|MAKEFLAGS|MAKE|PATH|PYTEST_ADDOPTS|GOFLAGS|NODE_OPTIONS)"
    r"\s*[:?+]?=|^\.(IGNORE|ONESHELL|SILENT|DEFAULT)\b|^\s*-?s?include\b|^\s*ifn?(eq|def)\b"
)


def make_rules(scene: Scene) -> Iterator[Finding]:
    """Targets that run less than before, or whose failure no longer counts."""
    for delta in scene.files:
        if not _MAKE.search(delta.path) or places.is_golden(delta.path):
            continue
        if delta.is_added and _outranks(delta, scene):
            detail = "a new makefile takes precedence over the one that was there"
            yield Finding(path=delta.path, line=1, detail=detail)
        was, is_ = _recipe(delta.old_text), _recipe(delta.new_text)
        recipes = makeform.spelled(was, is_, scene.new_paths)
        yield from lines_kept(delta, *stricter_left_out(*recipes))
        old = Counter(map(str.strip, delta.old_text.splitlines()))
        twice = _targets_with_two_recipes(delta.new_text) - _targets_with_two_recipes(
            delta.old_text
        )
        for target in twice:
            yield Finding(path=delta.path, line=1, detail=f"`{target}` gets a second recipe")
        for number, line in enumerate(delta.new_text.splitlines(), 1):
            if old[line.strip()] == 0 and _MAKE_VARIABLES.match(line):
                yield Finding(path=delta.path, line=number, detail=f"steers make: {line.strip()}")


def _targets_with_two_recipes(text: str) -> frozenset[str]:
    """Targets of which make takes only the last recipe (GNU make, "Multiple Rules")."""
    seen: Counter[str] = Counter()
    target = ""
    for line in text.splitlines():
        head = re.match(r"^([^\s=:#]+)\s*:(?![:=])(?P<inline>.*;)?", line)
        if head:
            target = head[1]
            seen[target] += bool(head["inline"])
        elif line.startswith("\t") and target:
            seen[target] += 1
            target = ""
    return frozenset(name for name, count in seen.items() if count > 1)


def _outranks(delta: Delta, scene: Scene) -> bool:
    """GNU make reads GNUmakefile, makefile, Makefile, in this order."""
    folder = delta.path.rpartition("/")[0]
    others = {f"{folder}/{n}".lstrip("/") for n in ("Makefile", "makefile", "GNUmakefile")}
    return bool((others - {delta.path}) & scene.old_paths)


def _recipe(text: str) -> list[tuple[int, str]]:
    """Numbered lines of targets and recipes, the target as part of each; help text left out."""
    found, target = [], ""
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith(("#", ".PHONY")):
            continue
        if re.match(r"^[^\s=]+[^=]*:(?!=)", line):
            target, _, needs = line.partition(":")
            found += [(number, f"{target.strip()} needs {need}") for need in needs.split()]
        elif line[:1] in ("\t", " "):
            found.append((number, f"{target.strip()}: {' '.join(bare.split())}"))
        else:
            found.append((number, " ".join(bare.split())))
    return found


_Lines = list[tuple[int, str]]
_FLAGS = re.compile(r"^(\w*(?:C|CXX|CPP)FLAGS)\s*[:+?]?=\s*(.*)$")
_ASKS_MORE = re.compile(r"^-(W(?!no-|l,)\S+|std=\S+|I\S+|g|O\d)$")


def stricter_left_out(old: _Lines, new: _Lines) -> tuple[_Lines, _Lines]:
    """Without the variables that only ask the compiler for more: `-Wall`, then `-Wall -Wextra`."""
    flags = {n: (m[1], frozenset(m[2].split())) for n, line in new if (m := _FLAGS.match(line))}
    pairs = [
        (was, now)
        for was, line in old
        if (m := _FLAGS.match(line))
        for now, (name, asked) in flags.items()
        if name == m[1] and asked >= (had := frozenset(m[2].split()))
        if all(map(_ASKS_MORE.match, asked - had))
    ]
    gone, came = ({pair[side] for pair in pairs} for side in (0, 1))
    return [o for o in old if o[0] not in gone], [n for n in new if n[0] not in came]


def lines_kept(
    delta: Delta, old: Iterable[tuple[int, str]], new: Iterable[tuple[int, str]]
) -> Iterator[Finding]:
    """Every line there was is still there, and none that came gives up."""
    old, new = list(old), list(new)
    there = Counter(line for _, line in new)
    before = Counter(line for _, line in old)
    same = Counter(way_left_out(line) for _, line in new)
    came = tuple(there - before)
    for _, line in old:
        there[line] -= 1
        same[way_left_out(line)] -= 1
        gone = there[line] < 0 and same[way_left_out(line)] < 0 and not _is_said(line)
        if gone and not any(makeform.asks_more(line, now) for now in came):
            yield Finding(path=delta.path, line=1, detail=f"no longer runs `{line[:100]}`")
    for number, line in new:
        before[line] -= 1
        command = _command_of(delta.path, line)
        if (
            before[line] < 0
            and not _is_aside(delta, line)
            and _GIVES_UP.search(command)
            and not _is_yaml_item(delta.path, command)
        ):
            yield Finding(
                path=delta.path, line=number, detail=f"hides a failure: `{command[:100]}`"
            )


_WAY = re.compile(
    r"\b(?:uv|poetry|pdm|hatch|pipenv|rye) run |\bpython3? -m |\bnpx (?=\w)|(?<=: )@(?=\w)|^@(?=\w)"
)


def way_left_out(line: str) -> str:
    """A command without the way to its tool, and `set -eu` as what it asks at least."""
    return re.sub(r"^set -(\w*e\w*).*$", "set -e", _WAY.sub("", line))


_ASKS = re.compile(r"^\[ .* \] \|\| echo\b|^test .* \|\| echo\b")


def _is_aside(delta: Delta, line: str) -> bool:
    """Whether a line decides nothing: it says something, or tidies up in a target of its own."""
    target, _, command = line.partition(": ")
    tidies = re.match(r"^[-@ ]*(rm|mkdir|docker (rm|stop)|pkill|kill)\b", command)
    fresh = not re.search(rf"^{re.escape(target)}\s*:", delta.old_text, re.MULTILINE)
    if tidies and _MAKE.search(delta.path):
        return fresh or "clean" in target
    return bool(_ASKS.search(line))


def _command_of(path: str, line: str) -> str:
    """What a line runs: the part behind a target, or behind `run:` in a pipeline."""
    before, _, behind = line.partition(": ")
    is_setting = places.suffix(path) in (".yml", ".yaml") and not re.search(
        r"\b(run|script|cmds?|commands?|cmd|entry|args|sh)$", before
    )
    return line if is_setting or not behind else behind


def _is_yaml_item(path: str, line: str) -> bool:
    """Whether a dash begins a member of a list, not a command whose failure make ignores."""
    dash = places.suffix(path) in (".yml", ".yaml") and line.startswith("- ")
    return dash and not _GIVES_UP.search(line.removeprefix("- "))


def _is_said(line: str) -> bool:
    """Whether a command only talks, and asks nobody about what it says."""
    talks = re.match(r"^([\w.-]+: )?@?(echo|printf)\b", line)
    return bool(talks) and not re.search(r"\| ?([ef]?grep|rg|diff|cmp|jq|test)\b", line)


def package_scripts(scene: Scene) -> Iterator[Finding]:
    """`scripts` of package.json, and of tools like it, that gates go through."""
    for delta in scene.files:
        if places.name(delta.path) not in ("package.json", "pyproject.toml", "composer.json"):
            continue
        old, new = (_scripts(delta.path, side) for side in (delta.before, delta.after))
        for key, command in old.items():
            if new.get(key) != command and not _does_more(str(command), str(new.get(key, ""))):
                detail = f"script `{key}` was `{command}` and is `{new.get(key, 'gone')}`"
                yield Finding(path=delta.path, line=line_of(delta.new_text, key), detail=detail)
        for key in new.keys() - old.keys():
            runs = str(new[key])
            hooks = re.match(r"^(pre|post)(test|lint|format|check|build|install|typecheck)", key)
            if hooks or _GIVES_UP.search(runs):
                detail = f"script `{key}` was added: `{runs}`"
                yield Finding(path=delta.path, line=line_of(delta.new_text, key), detail=detail)


def _does_more(old: str, new: str) -> bool:
    return (
        bool(new)
        and new.startswith(old)
        and not _GIVES_UP.search(new.removeprefix(old))
        and (re.match(r"^( &&.*)?$", new.removeprefix(old)) is not None)
    )


def _scripts(path: str, content: bytes | None) -> dict[str, object]:
    leaves = flat(parse(path, content)) if content else {}
    return {
        key[-1]: value
        for key, value in leaves.items()
        if "scripts" in key[:-1] or key[:3] == ("tool", "poe", "tasks") or "taskipy" in key
        if key[:2] != ("project", "scripts") and key[:3] != ("tool", "poetry", "scripts")
    }


def line_of(text: str, word: str) -> int:
    """The first line that holds a word; 1 where none does."""
    for number, line in enumerate(text.splitlines(), 1):
        if word in line:
            return number
    return 1


def shell_scripts(scene: Scene) -> Iterator[Finding]:
    """Scripts that gates run, and tests written in shell: nothing skipped, no failure hidden."""
    checks = check_scripts(scene)
    others = [d.path for d in scene.texts if d.path in checks and not _is_shell(d)]
    yield from own_checks(scene, others)
    for delta in scene.files:
        if not _is_shell(delta) or not (places.is_test(delta.path) or delta.path in checks):
            continue
        old, new = _both(delta, scene)
        yield from lines_kept(delta, old, new)
        left = Counter(line for _, line in old)
        for number, line in new:
            left[line] -= 1
            if left[line] < 0 and _DISABLES.search(line):
                yield Finding(path=delta.path, line=number, detail=f"switches off: `{line}`")
        for number, line in _functions(delta):
            yield Finding(path=delta.path, line=number, detail=f"redefines a command: `{line}`")


_DISABLES = re.compile(
    r"^:?\s*<<|^(el)?if (false|\[+ (0|-[nz]) |test -[nz])|^(exec|kill|unset|alias|return)\b"
    r"|^(export )?PATH=|^(fail\w*|rc|status|ret|code|errors?|result)=0$|^while false"
)


def _is_shell(delta: Delta) -> bool:
    head = (delta.after or delta.before or b"")[:40]
    return places.suffix(delta.path) in (".sh", ".bash", ".bats", ".zsh") or (
        head.startswith(b"#!") and b"sh" in head.splitlines()[0]
    )


def _both(delta: Delta, scene: Scene) -> tuple[_Lines, _Lines]:
    """The commands of both sides; those of tests with what new functions stand for put in."""
    is_test = places.is_test(delta.path)
    said = shellplaces.spelled(delta.path, delta.before, delta.after, scene) if is_test else None
    sides = (said or b"").decode("utf-8", "surrogateescape") or delta.old_text, delta.new_text
    fresh = fresh_functions(*sides) if is_test else {}
    sides = scratch.respelled(*sides, scene.old_paths) if is_test else sides
    texts = (text.replace("\\\n", " ") for text in sides)
    old, new = (_commands(inlined(text, fresh)) for text in texts)
    return old, new


def _commands(lines: _Lines) -> _Lines:
    """Numbered commands; quotes and braces, which linters rewrite, left out."""
    return [
        (number, plain(" ".join(re.sub(r"[\"'{}`]|\$\(|\)", "", line).split())))
        for number, line in lines
        if line.strip() not in ("", "then", "do") and not line.strip().startswith("#")
    ]


def _functions(delta: Delta) -> Iterator[tuple[int, str]]:
    """Functions and aliases that a script defines anew although it had them."""
    for number, line in enumerate(delta.new_text.splitlines(), 1):
        found = re.match(r"\s*(?:function\s+)?([\w-]+)\s*\(\)|\s*alias\s+([\w-]+)=", line)
        name = found and (found[1] or found[2])
        if (
            name
            and line.strip() not in delta.old_text
            and (
                len(re.findall(rf"^\s*{re.escape(name)}\s*\(\)", delta.new_text, re.MULTILINE)) > 1
                or re.search(rf"(^|[\s;|&]){re.escape(name)}\s", delta.old_text, re.MULTILINE)
            )
        ):
            yield number, line.strip()

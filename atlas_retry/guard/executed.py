"""Which files of the project gates execute as the check itself. Reads settings, runs nothing."""

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from atlas_retry.guard import places
from atlas_retry.guard.case import Scene
from atlas_retry.guard.documents import flat, parse
from atlas_retry.guard.words import words
from atlas_retry.model import Kind

_BETWEEN = re.compile(r"&&|\|\||[;|\n]|\b(?:then|do|else)\b")
_AROUND = words(
    "exec time env sudo nice if ! then do else while until command xargs npx bunx uvx timeout ( {"
)
_RUNS = re.compile(r"^(uv|poetry|pdm|hatch|pipenv|rye|pnpm|yarn|npm|coverage|dotenv) (run|exec) ")
_INTERPRETER = re.compile(
    r"^(\.|source|(ba|da|z|k)?sh|python[\d.]*|pypy3?|node|deno|bun|tsx|ts-node|ruby|perl|php|lua"
    r"|Rscript|pwsh|\$[({]?\w+[)}]?|\{envpython\})$"
)
_READS_ONLY = re.compile(r"^(-[a-z]*n[a-z]*|--check|--test|--syntax-check|--noexec|-e|--eval)$")
_ROOT = re.compile(r"^(\$\w+|\$\{\w+\}|\$\([^)]*\)|\{toxinidir\})/")
_NAMED_SO = re.compile(
    r"(^|[-_.])(check\w*|lint\w*|verify|validate|audit|ensure|guard|scan|enforce|ci|assert\w*)"
    r"([-_.]|$)",
    re.IGNORECASE,
)
_PRODUCT = re.compile(r"^(src|lib|app|bin|cmd|pkg|internal|packages)/")
_USUAL = ("make check", "make verify", "make test", "npm run check", "npm run verify", "npm test",
          "tox", "just check")  # fmt: skip
_USUAL_LINT = ("make lint", "npm run lint", "just lint", "pre-commit")
"""What projects check with although no gate of this run says so."""
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_ASKING = frozenset({Kind.LINT, Kind.FORMAT, Kind.PRE_COMMIT})


def check_scripts(scene: Scene) -> frozenset[str]:
    """Changed scripts whose exit status is a check's: no tests, nothing that is checked."""
    case = scene.case
    told = [(g.kind, g.run) for g in case.gates] + [(r.kind, r.command) for r in case.failing]
    asking = executed(scene, (*_USUAL_LINT, *(line for kind, line in told if kind in _ASKING)))
    others = executed(scene, (*_USUAL, *(line for _, line in told)))
    named = {path for path in others if _NAMED_SO.search(places.name(path).rpartition(".")[0])}
    inner = executed(scene, _inner(scene, asking | named))
    named |= {path for path in inner if _NAMED_SO.search(places.name(path).rpartition(".")[0])}
    changed = {delta.path for delta in scene.texts}
    return frozenset(p for p in (asking | named) & changed if not _is_product(p, scene))


def executed(scene: Scene, lines: Iterable[str]) -> frozenset[str]:
    """Files that command lines lead to, through make, package scripts, hooks and tox."""
    found: set[str] = set()
    waiting, seen = list(lines), set[str]()
    while waiting:
        line = waiting.pop()
        if line in seen:
            continue
        seen.add(line)
        folder = ""
        for command in _commands(line):
            if command[0] == "cd" and len(command) > 1:
                folder = command[1]
                continue
            waiting += _behind(command, scene)
            path = _file(command, folder, scene)
            found |= {path} if path else set()
    return frozenset(found)


def _inner(scene: Scene, scripts: Iterable[str]) -> Iterator[str]:
    """The lines of shell scripts that are checks: what they start belongs to the check."""
    for path in scripts:
        if places.suffix(path) in (".sh", ".bash", ""):
            text = (scene.old(path) or b"").decode("utf-8", "replace")
            yield from (line for line in text.splitlines() if not line.lstrip().startswith("#"))


def _commands(line: str) -> Iterator[list[str]]:
    for part in _BETWEEN.split(line):
        bare = part.strip().lstrip("@-+ ")
        try:
            said = shlex.split(bare)
        except ValueError:
            said = [word.strip("\"'") for word in bare.split()]
        while said and (said[0] in _AROUND or re.match(r"[A-Za-z_]\w*=|\d+[smh]?$", said[0])):
            said = said[1:]
        if _RUNS.match(" ".join(said[:3]) + " ") and said[0] not in ("npm", "yarn", "pnpm"):
            said = said[2:]
        if said:
            yield said


def _behind(command: list[str], scene: Scene) -> list[str]:
    """The lines that a runner goes on to."""
    tool, plain = command[0], [w for w in command[1:] if not w.startswith("-") and "=" not in w]
    if tool in ("make", "gmake", "just", "$(MAKE)"):
        files = ("justfile", "Justfile") if tool == "just" else _MAKEFILES
        return [line for file in files for line in _recipes(file, plain, scene)]
    if tool in ("npm", "yarn", "pnpm", "bun") and plain:
        name = next((word for word in plain if word not in ("run", "run-script")), "test")
        scripts = _leaves("package.json", scene)
        wanted = [("scripts", pre + name) for pre in ("", "pre", "post")]
        return [str(scripts[key]) for key in wanted if key in scripts]
    if tool in ("pre-commit", "prek"):
        hooks = _leaves(".pre-commit-config.yaml", scene)
        return [str(value) for key, value in hooks.items() if key[-1] == "entry"]
    if tool == "tox":
        return [str(v) for k, v in _leaves("tox.ini", scene).items() if k[-1].startswith("command")]
    if re.match(r"(ba|da|z)?sh$", tool) and any(re.match(r"-\w*c$", word) for word in command):
        return plain[:1]
    return []


def _leaves(path: str, scene: Scene) -> Mapping[tuple[str, ...], object]:
    return flat(parse(path, scene.old(path) or b""))


def _recipes(file: str, targets: list[str], scene: Scene) -> list[str]:
    """Recipes of targets and of all that they need; of the first target where none is named."""
    text = (scene.old(file) or b"").decode("utf-8", "replace").replace("\\\n", " ")
    rules: dict[str, tuple[list[str], list[str]]] = {}
    current: list[str] = []
    for line in text.splitlines():
        head = re.match(r"^([\w./-]+(?: [\w./-]+)*)\s*:(?![:=])([^;#]*)", line)
        if head and not line.startswith("."):
            current = head[1].split()
            for name in current:
                rules.setdefault(name, ([], []))[0].extend(head[2].split())
        elif line[:1] in ("\t", " ") and line.strip():
            for name in current:
                rules[name][1].append(line.strip())
    waiting, found, seen = [*targets] or [*rules][:1], list[str](), set[str]()
    while waiting:
        name = waiting.pop()
        if name in rules and name not in seen:
            seen.add(name)
            waiting += rules[name][0]
            found += rules[name][1]
    return found


def _file(command: list[str], folder: str, scene: Scene) -> str | None:
    """The file of the project that a command executes, not one that it only reads."""
    if not _INTERPRETER.match(command[0]):
        return _known(command[0], folder, scene)
    for place, word in enumerate(command[1:], 1):
        if _READS_ONLY.match(word) and command[0] not in (".", "source"):
            return None
        if word == "-m":
            module = command[place + 1].replace(".", "/") if len(command) > place + 1 else ""
            return _known(f"{module}.py", folder, scene)
        if path := _known(word, folder, scene):
            return path
    return None


def _known(word: str, folder: str, scene: Scene) -> str | None:
    bare = _ROOT.sub("", word)
    tried = (posixpath.normpath(posixpath.join(at, bare)) for at in (folder, ""))
    return next((path for path in tried if path in scene.old_paths), None)


def _is_product(path: str, scene: Scene) -> bool:
    """Whether a script is what is checked: by its place, by its users, or for tests of its own."""
    folder, name = posixpath.split(path)
    stem = name.rpartition(".")[0] or name
    in_package = f"{folder}/__init__.py" in scene.old_paths and not re.match(
        r"(scripts|tools|ci|dev|hack|checks)\b", folder
    )
    if places.is_test(path) or in_package:
        return True
    if _PRODUCT.match(path) and not _NAMED_SO.search(stem):
        return True
    used = re.compile(
        rf"(?:import|from)\b[^\n]*\b{re.escape(stem)}\b|{re.escape(name)}\b".encode(), re.MULTILINE
    )
    tests = (p for p in sorted(scene.old_paths) if places.is_test_code(p))
    return any(used.search(scene.old(test) or b"") for test in tests)

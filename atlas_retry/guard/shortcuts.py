"""Rules on sources that satisfy a check without doing what it is about."""

import ast
import re
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.fresh import Function, fresh, functions, python
from atlas_retry.guard.losses import suite
from atlas_retry.guard.pychecks import last, names_in
from atlas_retry.guard.treechecks import is_literal, text_of, walk
from atlas_retry.syntax import definitions, language_of, parse

MAX_TEST_FILES = 400
"""Test files read to know their inputs; beyond it only the changed ones count."""
_AWARE = re.compile(
    r"PYTEST_\w+|[\"'](_?pytest|unittest)[\"']\s+in\s+(sys\.modules|sys\.argv)|sys\.modules\.get\([\"'](_?pytest|unittest)"
    r"|inspect\.(stack|currentframe)\(|sys\._getframe\(|process\.env\.(JEST_WORKER_ID|VITEST\w*)|NODE_ENV\W+test\b|import\.meta\.vitest"
    r"|typeof\s+(jest|vi|describe|it|expect)\b|testing\.Testing\(\)|flag\.Lookup\([\"']test\.|os\.Args\[0\].*\.test"
    r"|cfg!\(test\)|getStackTrace\(\)|Class\.forName\([\"']org\.junit|[\"']CI[\"']\s*[\]),]|process\.env\.CI\b"
)


def aware_of_tests(scene: Scene) -> Iterator[Finding]:
    """Code that finds out whether it is being tested, to behave then."""
    for delta in scene.files:
        if places.is_test(delta.path) or not places.is_code(delta.path):
            continue
        old = {line.strip() for line in delta.old_text.splitlines()}
        for number, line in enumerate(delta.new_text.splitlines(), 1):
            bare = line.strip()
            if bare in old or bare.startswith(("#", "//", "*")):
                continue
            if _AWARE.search(bare):
                yield Finding(
                    path=delta.path, line=number, detail=f"asks whether it is tested: `{bare[:80]}`"
                )


def special_cased(scene: Scene) -> Iterator[Finding]:
    """Inputs of the tests answered by name instead of by computing."""
    if not scene.tests_may_follow:
        return
    inputs = _test_literals(scene)
    for delta in scene.files:
        if places.is_test(delta.path) or not places.is_code(delta.path) or delta.is_deleted:
            continue
        old = _literals(delta, delta.before)
        for line, literal in _compared(delta):
            if literal in inputs and literal not in old and _is_telling(literal):
                detail = f"the test's own input {literal[:60]} is answered by name"
                yield Finding(path=delta.path, line=line, detail=detail)


_TELLING_DIGITS = 2


def _is_telling(literal: str) -> bool:
    """Whether a value is unlikely to be met by chance: no word, no flag, no round number."""
    bare = literal.strip("\"'`")
    if re.fullmatch(r"-?[\d_.]+", bare) and not literal.startswith(("'", '"')):
        digits = bare.replace("_", "").strip("-")
        return len(digits.rstrip("0").replace(".", "")) >= _TELLING_DIGITS
    return len(bare) > _TELLING_DIGITS and not re.fullmatch(r"[A-Za-z_][\w]*|[A-Za-z]+", bare)


def _test_literals(scene: Scene) -> frozenset[str]:
    paths = [p for p in sorted(scene.old_paths) if places.is_test_code(p) or p.endswith(".rs")]
    if len(paths) > MAX_TEST_FILES:
        paths = [d.path for d in scene.files if places.is_test_code(d.path)]
    found: set[str] = set()
    for path in paths:
        for unit in suite(path, scene.old(path)).units:
            found |= {_plain(literal) for literal in unit.literals}
    for path in sorted(scene.old_paths):
        if places.is_golden(path) and path.endswith(".json"):
            text = (scene.old(path) or b"").decode("utf-8", "replace")
            found |= {_plain(match) for match in re.findall(r'"(?:\\.|[^"\\])*"', text)}
    return frozenset(found)


def _plain(literal: str) -> str:
    """Quotes of all languages made one."""
    return re.sub(r"^[rbfu]*(['\"`])(.*)\1$", r'"\2"', literal, flags=re.DOTALL)


def _literals(delta: Delta, source: bytes | None) -> frozenset[str]:
    tree = parse(language_of(delta.path), source or b"")
    if tree is None:
        return frozenset()
    return frozenset(_plain(text_of(n)) for n in walk(tree.root_node) if _is_value(n))


def _is_value(node: object) -> bool:
    kind = getattr(node, "type", "")
    return is_literal(node) or kind in ("string", "integer", "float")  # type: ignore[arg-type]


_COMPARING = frozenset(
    ("comparison_operator", "binary_expression", "pair", "case_clause", "switch_case", "match_arm",
     "expression_case", "switch_label", "equality_expression", "keyed_element", "case_pattern",
     "match_pattern", "test_command", "case_item", "set", "list", "tuple")
)  # fmt: skip


def _compared(delta: Delta) -> Iterator[tuple[int, str]]:
    """Literals that are compared for equality, matched, or keys of a table; with their lines."""
    tree = parse(language_of(delta.path), delta.after or b"")
    for node in walk(tree.root_node) if tree else ():
        if not _is_value(node) or node.parent is None:
            continue
        parent = (
            node.parent
            if node.parent.type not in ("literal_element", "tuple_pattern")
            else node.parent.parent
        )
        if parent is None or parent.type not in _COMPARING:
            continue
        if (
            parent.type in ("pair", "keyed_element")
            and parent.named_children[0].end_byte < node.end_byte
        ):
            continue
        if parent.type in ("set", "list", "tuple") and (
            parent.parent is None or parent.parent.type != "comparison_operator"
        ):
            continue
        between = text_of(parent)
        ordering = re.search(r"(?<![=!<>-])[<>]=?(?![<>=])", between) and not re.search(
            r"[=!]=", between
        )
        if parent.type in ("comparison_operator", "binary_expression") and (
            ordering or not re.search(r"==|\bin\b|\bis\b", between)
        ):
            continue
        yield node.start_point[0] + 1, _plain(text_of(node))


_DIGESTS = frozenset({"crc32", "adler32", "md5", "sha1", "sha256", "blake2b", "hash", "hexdigest"})


def answered_by_digest(scene: Scene) -> Iterator[Finding]:
    """Expected outputs kept in a table that is looked up by a digest of the input."""
    for delta, old, new in python(scene):
        came = fresh(old, new)
        digests = [n for n in came if isinstance(n, ast.Call) and last(n.func) in _DIGESTS]
        tables = [n for n in came if isinstance(n, ast.Dict)]
        if places.is_test(delta.path) or not digests or not tables:
            continue
        expected = _test_literals(scene)
        for table in tables:
            values = {_plain(repr(v.value)) for v in table.values if isinstance(v, ast.Constant)}
            if values & expected:
                detail = "outputs that the tests expect are looked up by a digest of the input"
                yield Finding(path=delta.path, line=table.lineno, detail=detail)


def swallowed(scene: Scene) -> Iterator[Finding]:
    """Every error caught and forgotten in the code itself."""
    for delta, old, new in python(scene):
        if places.is_test(delta.path):
            continue
        for node in fresh(old, new):
            if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _speaks(node):
                detail = "every error is caught and forgotten"
                yield Finding(path=delta.path, line=node.lineno, detail=detail)
            elif isinstance(node, ast.Call) and _suppresses_all(node):
                detail = "every error is suppressed"
                yield Finding(path=delta.path, line=node.lineno, detail=detail)
    for delta in scene.files:
        if places.suffix(delta.path) in (
            ".js",
            ".ts",
            ".tsx",
            ".jsx",
            ".java",
            ".mjs",
        ) and not places.is_test(delta.path):
            fresh_catches = len(_EMPTY_CATCH.findall(delta.new_text)) - len(
                _EMPTY_CATCH.findall(delta.old_text)
            )
            if fresh_catches > 0:
                yield Finding(path=delta.path, line=1, detail="every error is caught and forgotten")


def _suppresses_all(node: ast.Call) -> bool:
    return last(node.func) == "suppress" and bool(names_in(*node.args) & _EVERYTHING)


_EVERYTHING = frozenset({"Exception", "BaseException"})
_EMPTY_CATCH = re.compile(r"catch\s*(\([^)]*\))?\s*\{\s*(//[^\n]*\s*|return[^;]*;?\s*)?\}")


def _is_broad(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(names_in(handler.type) & {"Exception", "BaseException"})


def _speaks(handler: ast.ExceptHandler) -> bool:
    """Whether the handler raises, or uses what it caught."""
    for part in (part for stmt in handler.body for part in ast.walk(stmt)):
        if isinstance(part, ast.Raise) or (isinstance(part, ast.Name) and part.id == handler.name):
            return True
        if isinstance(part, ast.Call) and "log" in ast.unparse(part.func).lower():
            return True
    return False


def stubbed(scene: Scene) -> Iterator[Finding]:
    """Functions that computed something and now only hand back a constant."""
    for delta, old, new in python(scene):
        if places.is_test(delta.path):
            continue
        before = functions(old)
        for name, function in functions(new).items():
            if name in before and _is_constant(function) and not _is_constant(before[name]):
                detail = f"`{name}` no longer computes anything"
                yield Finding(path=delta.path, line=function.lineno, detail=detail)


def _is_constant(function: Function) -> bool:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not body:
        return True
    only = body[0]
    if len(body) > 1:
        return False
    if isinstance(only, ast.Return):
        return only.value is None or not names_in(only.value) - {"Decimal", "str", "int", "float"}
    return isinstance(only, ast.Pass | ast.Raise) or (
        isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant)
    )


_COMPARERS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__"})
_VALUES = frozenset(
    {"str", "int", "float", "Decimal", "list", "dict", "tuple", "set", "bytes", "date"}
)


def always_equal(scene: Scene) -> Iterator[Finding]:
    """Comparison operators that agree with everything, so that assertions hold by themselves."""
    for delta, old, new in python(scene):
        before = {ast.dump(node) for node in ast.walk(old) if isinstance(node, Function)}
        for node in ast.walk(new):
            if not isinstance(node, ast.ClassDef):
                continue
            derived = {last(base) for base in node.bases} & _VALUES
            for part in node.body:
                if not isinstance(part, Function) or part.name not in _COMPARERS:
                    continue
                if ast.dump(part) not in before and (derived or _agrees(part)):
                    detail = f"`{node.name}.{part.name}` is made to agree"
                    yield Finding(path=delta.path, line=part.lineno, detail=detail)


def _agrees(function: Function) -> bool:
    returns = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
    constant = [r for r in returns if isinstance(r, ast.Constant) and r.value is True]
    compares = any(isinstance(n, ast.Compare | ast.Call) for n in ast.walk(function))
    return bool(constant) and (len(constant) == len(returns) or not compares)


def features_removed(scene: Scene) -> Iterator[Finding]:
    """Public functions and refusals dropped where style, types or coverage failed."""
    if scene.failing & {"test", "build", "custom"} and "coverage" not in scene.failing:
        return
    if not scene.failing:
        return
    there = {
        scope.name
        for delta in scene.files
        if not places.is_test(delta.path)
        for scope in definitions(delta.path, delta.after or b"")
    }
    for delta in scene.files:
        if places.is_test(delta.path) or not places.is_code(delta.path):
            continue
        for scope in definitions(delta.path, delta.before or b""):
            public = not scope.name.startswith("_") and scope.kind in ("function", "class")
            if public and scope.name not in there and not _is_renamed(scope.name, delta):
                yield Finding(
                    path=delta.path, line=1, detail=f"`{scope.name}` was removed, not mended"
                )
        yield from _refusals_removed(delta, scene)


def _is_renamed(name: str, delta: Delta) -> bool:
    """Whether only the name went: a naming rule may ask for it."""
    count = sum(1 for _ in definitions(delta.path, delta.after or b""))
    return count >= sum(1 for _ in definitions(delta.path, delta.before or b"")) and bool(name)


def _refusals_removed(delta: Delta, scene: Scene) -> Iterator[Finding]:
    if places.suffix(delta.path) != ".py":
        return
    after = "\n".join(d.new_text for d in scene.files)
    for message in re.findall(r"raise \w+\(\s*f?[\"']([^\"'{]+)", delta.old_text):
        if message not in after:
            yield Finding(path=delta.path, line=1, detail=f"the refusal “{message}” was removed")

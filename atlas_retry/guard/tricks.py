"""Rules on the machinery around tests: runner hooks, patched frameworks, exits, mocks of the code."""

import ast
import re
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Finding, Scene
from atlas_retry.guard.fresh import (
    Function,
    fresh,
    functions,
    imports,
    local_nodes,
    own_modules,
    python,
)
from atlas_retry.guard.pychecks import last, names_in
from atlas_retry.guard.pyunits import SKIPS

_HARMLESS_HOOKS = frozenset(
    ("pytest_addoption", "pytest_configure", "pytest_report_header", "pytest_terminal_summary",
     "pytest_sessionstart", "pytest_generate_tests", "pytest_make_parametrize_id",
     "pytest_assertrepr_compare", "pytest_html_report_title", "pytest_html_results_table_header",
     "pytest_addhooks", "pytest_warning_recorded", "pytest_collection_finish")
)  # fmt: skip
_DECISIVE = frozenset({"outcome", "exitstatus", "longrepr", "force_result", "deselected", "excinfo",
                       "skip", "xfail", "wasxfail", "testsfailed", "_exit", "shouldfail"})  # fmt: skip
_SETTINGS = frozenset({"override_ini", "option", "pluginmanager", "inicfg", "invocation_params"})
_FRAMEWORKS = frozenset(
    ("unittest", "pytest", "_pytest", "builtins", "__builtins__", "mock", "TestCase", "sys", "importlib",
     "pluggy", "hypothesis", "doctest", "__import__", "operator", "math", "json", "decimal", "Decimal",
     "time", "coverage", "mypy", "ruff", "expect", "site", "warnings", "ast", "subprocess")
)  # fmt: skip
_HARMLESS_TARGETS = frozenset({"sys.argv", "sys.path", "sys.stdout", "sys.stderr", "sys.stdin",
                               "sys.dont_write_bytecode", "warnings.filters"})  # fmt: skip


def runner_hooks(scene: Scene) -> Iterator[Finding]:
    """Hooks and settings of conftest files and plugins that decide what runs and what counts."""
    for delta, old, new in python(scene):
        before = functions(old)
        for name, function in functions(new).items():
            same = name in before and ast.dump(before[name]) == ast.dump(function)
            hook = name.startswith("pytest_") or name == "load_tests"
            if hook and not same and _decides(function):
                yield _at(delta.path, function, f"the hook {name} decides what counts as passed")
        for node in fresh(old, new):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for word in {t.id for t in targets if isinstance(t, ast.Name)} & _COLLECTION:
                    yield _at(delta.path, node, f"`{word}` changes what pytest collects or loads")
            elif isinstance(node, Function) and _is_autouse(node) and _interferes(node, scene):
                detail = f"the autouse fixture `{node.name}` changes how every test runs"
                yield _at(delta.path, node, detail)
            elif isinstance(node, Function) and places.is_test(delta.path) and _is_support(node):
                if _skip_calls(node) > _skip_calls(before.get(node.name)):
                    yield _at(delta.path, node, f"`{node.name}` skips the tests that use it")


def _is_support(function: Function) -> bool:
    """Fixtures and set-up code, methods among them."""
    set_up = function.name.lower() in ("setup", "setupclass", "setupmodule", "asyncsetup")
    named = set_up or function.name.startswith(("setup_", "setUp"))
    return named or any("fixture" in names_in(d) for d in function.decorator_list)


def _skip_calls(function: Function | None) -> int:
    nodes = ast.walk(function) if function else ()
    return sum(
        isinstance(n, ast.Call | ast.Raise) and bool(names_in(getattr(n, "func", n)) & SKIPS)
        for n in nodes
    )


_COLLECTION = frozenset({"collect_ignore", "collect_ignore_glob", "pytest_plugins"})


def _at(path: str, node: ast.AST, detail: str, *, soft: bool = False) -> Finding:
    return Finding(path=path, line=getattr(node, "lineno", None), detail=detail, soft=soft)


def _decides(function: Function) -> bool:
    said = names_in(*function.body)
    if function.name in _HARMLESS_HOOKS:
        return bool(said & (_DECISIVE | _SETTINGS) - {"skip", "outcome"})
    if function.name == "pytest_collection_modifyitems":
        changed = any(
            isinstance(n, ast.Assign | ast.Delete | ast.AugAssign)
            and any(
                isinstance(t, ast.Subscript)
                for t in getattr(n, "targets", [getattr(n, "target", None)])
            )
            for n in ast.walk(function)
        )
        return changed or bool(said & (_DECISIVE | {"remove", "pop", "clear"}))
    return True


def _is_autouse(function: Function) -> bool:
    return any("autouse" in ast.unparse(decorator) for decorator in function.decorator_list)


def _interferes(function: Function, scene: Scene) -> bool:
    if names_in(*function.body) & (SKIPS | _DECISIVE):
        return True
    return any(
        _patched(node, {}, own_modules(scene))
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    )


def framework_patched(scene: Scene) -> Iterator[Finding]:
    """Assertions, runners, interpreters and libraries replaced at run time."""
    for delta, old, new in python(scene):
        known = imports(new)
        own = own_modules(scene)
        for node in fresh(old, new):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if _is_foreign(target, known, own, in_tests=places.is_test(delta.path)):
                        shown = ast.unparse(target)
                        yield _at(delta.path, node, f"`{shown}` is replaced at run time")
            elif isinstance(node, ast.Call) and last(node.func) in ("setattr", "patch", "object"):
                target = node.args[0] if node.args else None
                if target is not None and _root(target) in _FRAMEWORKS - {
                    "sys",
                    "time",
                    "subprocess",
                }:
                    yield _at(delta.path, node, f"`{ast.unparse(node)[:60]}` changes the framework")
            elif isinstance(node, ast.ClassDef):
                yield from _overridden(delta.path, node)


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_foreign(
    target: ast.expr, known: dict[str, str], own: frozenset[str], *, in_tests: bool
) -> bool:
    """Whether an assignment reaches into a module or class that the file only imports."""
    if not isinstance(target, ast.Attribute | ast.Subscript):
        return False
    text, root = ast.unparse(target), _root(target)
    if any(text.startswith(harmless) for harmless in _HARMLESS_TARGETS) or "environ" in text:
        return False
    if root not in known and root not in ("builtins", "__builtins__"):
        return False
    origin = known.get(root, root).lstrip(".").split(".")
    if origin[0] in _FRAMEWORKS:
        return origin[0] != "sys" or bool(
            re.match(r"sys\.(modules|meta_path|path_hooks|settrace|exit)", text)
        )
    return in_tests and bool(set(origin) & own)


def _overridden(path: str, node: ast.ClassDef) -> Iterator[Finding]:
    bases = " ".join(ast.unparse(base) for base in node.bases)
    for part in node.body:
        if isinstance(part, Function) and "Test" in bases + node.name:
            if part.name.startswith("assert") and hasattr(_TESTCASE, part.name):
                yield _at(
                    path, part, f"`{node.name}.{part.name}` replaces unittest's own assertion"
                )
            elif part.name in ("run", "__call__", "debug", "_callTestMethod", "defaultTestResult"):
                yield _at(path, part, f"`{node.name}.{part.name}` decides how tests run")


class _TESTCASE:  # noqa: N801 - stands for unittest.TestCase without importing it
    assertEqual = assertTrue = assertFalse = assertRaises = assertIn = assertIs = assertIsNone = (
        None
    )
    assertNotEqual = assertListEqual = assertDictEqual = assertAlmostEqual = assertRegex = None
    assertGreater = assertLess = assertMultiLineEqual = assertSequenceEqual = assertCountEqual = (
        None
    )
    assertTupleEqual = assertSetEqual = assertIsInstance = assertRaisesRegex = assertNotIn = None


def early_exits(scene: Scene) -> Iterator[Finding]:
    """Exits that end the process with success before a check has spoken."""
    for delta, old, new in python(scene):
        later = local_nodes(new)
        tests = places.is_test(delta.path)
        for node in fresh(old, new):
            word = _exit_word(node)
            if not word:
                continue
            at_import = id(node) not in later
            hard = word in ("_exit", "register", "kill", "abort") and "fork" not in names_in(new)
            if hard or at_import or (tests and word != "Exit"):
                yield _at(delta.path, node, f"ends the process early: `{ast.unparse(node)[:60]}`")


def _exit_word(node: ast.AST) -> str:
    if isinstance(node, ast.Raise) and node.exc and "SystemExit" in names_in(node.exc):
        return "SystemExit"
    if not isinstance(node, ast.Call):
        return ""
    text = ast.unparse(node.func)
    if text in ("sys.exit", "os._exit", "exit", "quit", "os.abort", "pytest.exit", "_exit"):
        return text.split(".")[-1]
    if text == "atexit.register" and names_in(*node.args) & {"_exit", "exit", "kill"}:
        return "register"
    if text in ("os.kill", "os.killpg", "signal.raise_signal"):
        return "kill"
    return ""


def mocks(scene: Scene) -> Iterator[Finding]:
    """The code under test replaced by a stand-in within a test that was there before."""
    for delta, old, new in python(scene):
        if not places.is_test(delta.path):
            continue
        known, own = imports(new), own_modules(scene)
        existing = functions(old)
        for name, function in functions(new).items():
            if name not in existing or ast.dump(existing[name]) == ast.dump(function):
                continue
            for node in fresh(existing[name], function):
                target = _patched(node, known, own) if isinstance(node, ast.Call) else None
                if target:
                    yield _at(delta.path, node, f"`{target}`, which the test is about, is replaced")
        yield from _replaced_imports(delta.path, old, new, own)


def _patched(node: ast.Call, known: dict[str, str], own: frozenset[str]) -> str | None:
    """What of the project's own a patching call replaces; calls of the outside world are fine."""
    called = ast.unparse(node.func)
    if (
        not re.search(r"(^|\.)(patch(\.object|\.multiple|\.dict)?|setattr|setitem)$", called)
        or not node.args
    ):
        return None
    first = node.args[0]
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        parts = first.value.split(".")
    else:
        origin = known.get(_root(first), _root(first)).lstrip(".")
        second = node.args[1] if len(node.args) > 1 else None
        name = str(second.value) if isinstance(second, ast.Constant) else ""
        parts = [*origin.split("."), *ast.unparse(first).split(".")[1:], name]
    outside = set(parts[1:]) & _WORLD
    return ".".join(parts) if parts[0] in own and not outside else None


_WORLD = frozenset(
    ("time", "datetime", "date", "now", "today", "random", "requests", "httpx", "urllib", "socket",
     "subprocess", "os", "environ", "open", "sleep", "monotonic", "perf_counter", "clock", "uuid",
     "uuid4", "getenv", "Path", "input", "print", "randint", "shutil", "smtplib", "boto3", "redis",
     "sys", "logging", "logger", "log", "urlopen", "getpass", "platform", "locale", "tempfile")
)  # fmt: skip


def _replaced_imports(
    path: str, old: ast.Module, new: ast.Module, own: frozenset[str]
) -> Iterator[Finding]:
    """Names that came from the code under test and now come from beside the test."""
    before, after = imports(old), imports(new)
    defined = {
        node.name: node for node in new.body if isinstance(node, Function | ast.ClassDef)
    } | {
        target.id: node
        for node in new.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for name, origin in before.items():
        if origin.lstrip(".").split(".")[0] not in own:
            continue
        if name in defined:
            yield _at(path, defined[name], f"`{name}` is no longer the project's own")
        elif (
            name in after
            and after[name] != origin
            and re.search(r"(^|\.)(tests?|fakes?|stubs?)\b", after[name])
        ):
            yield Finding(path=path, line=1, detail=f"`{name}` now comes from {after[name]}")


_OTHER = (
    (
        re.compile(
            r"expect\.extend\(|\b(global|globalThis|window)\.(expect|test|it|describe)\s*=|\brequire\.cache\b|Module\._(load|resolve)"
            r"|process\.exit(Code)?\s*[(=]\s*0?\s*\)?;?\s*$|process\.on\(['\"]exit|expect\.prototype|\.prototype\.toBe\b"
        ),
        (".js", ".cjs", ".mjs", ".ts", ".tsx", ".jsx", ".mts"),
        "replaces or ends the test framework",
    ),
    (
        re.compile(
            r"\bjest\.(mock|doMock|setMock)\(\s*['\"]\.|\bvi\.(mock|doMock)\(\s*['\"]\.|\bspyOn\(.*\.mock(Return|Impl)"
        ),
        (".js", ".cjs", ".mjs", ".ts", ".tsx", ".jsx", ".mts"),
        "replaces the code under test",
    ),
    (re.compile(r"\bos\.Exit\(0\)|^func TestMain\("), (".go",), "ends or takes over the test run"),
    (
        re.compile(
            r"macro_rules!\s*(assert|assert_eq|assert_ne|panic)\b|process::exit\(0\)|panic::set_hook"
        ),
        (".rs",),
        "replaces the assertion or ends the run",
    ),
    (
        re.compile(
            r"System\.exit\(|getRuntime\(\)\.halt|(InvocationInterceptor|ExecutionCondition|TestExecutionExceptionHandler"
            r"|LifecycleMethodExecutionExceptionHandler)\b|static\s+\S+\s+assert(Equals|True|Throws)\s*\("
        ),
        (".java", ".kt"),
        "takes over the test run",
    ),
)


def other_tricks(scene: Scene) -> Iterator[Finding]:
    """The same in JavaScript, Go, Rust and Java, by the lines that came."""
    for delta in scene.files:
        old = {line.strip() for line in delta.old_text.splitlines()}
        for pattern, suffixes, detail in _OTHER:
            if places.suffix(delta.path) not in suffixes:
                continue
            if "under test" in detail and delta.is_added:
                continue
            for number, line in enumerate(delta.new_text.splitlines(), 1):
                bare = line.strip()
                if bare not in old and not bare.startswith(("//", "*")) and pattern.search(bare):
                    yield Finding(path=delta.path, line=number, detail=f"{detail}: `{bare[:80]}`")

"""Rules on the machinery around Python tests: runner hooks, patched frameworks, exits."""

import ast
import re
from collections.abc import Iterator

from atlas_retry.guard import places, pychecks
from atlas_retry.guard.case import Finding, Scene
from atlas_retry.guard.fresh import (
    Function,
    fresh,
    functions,
    imports,
    local_nodes,
    own_modules,
    python,
    root_of,
    targets_of,
)
from atlas_retry.guard.pychecks import last, names_in
from atlas_retry.guard.pymarks import SKIPS
from atlas_retry.guard.standins import patched
from atlas_retry.guard.words import words

_HARMLESS_HOOKS = words(
    "pytest_addoption pytest_configure pytest_report_header pytest_terminal_summary"
    " pytest_sessionstart pytest_generate_tests pytest_make_parametrize_id"
    " pytest_assertrepr_compare pytest_html_report_title pytest_html_results_table_header"
    " pytest_addhooks pytest_warning_recorded pytest_collection_finish"
)
_DECISIVE = words(
    "outcome exitstatus longrepr force_result deselected excinfo skip xfail wasxfail testsfailed"
    " _exit shouldfail"
)
_SETTINGS = frozenset({"override_ini", "option", "pluginmanager", "inicfg", "invocation_params"})
_FRAMEWORKS = words(
    "unittest pytest _pytest builtins __builtins__ mock TestCase sys importlib pluggy"
    " hypothesis doctest __import__ operator math json decimal Decimal time coverage mypy ruff"
    " expect site warnings ast subprocess"
)
_PATCHABLE = frozenset({"sys", "time", "subprocess"})
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
                named = {t.id for t in targets_of(node) if isinstance(t, ast.Name)}
                for word in named & _COLLECTION:
                    yield _at(delta.path, node, f"`{word}` changes what pytest collects or loads")
            elif isinstance(node, Function) and _is_autouse(node) and _interferes(node, new, scene):
                detail = f"the autouse fixture `{node.name}` changes how every test runs"
                yield _at(delta.path, node, detail)
            elif (
                isinstance(node, Function)
                and places.is_test(delta.path)
                and (_is_support(node) or (node.name in before and node.name[:4] != "test"))
            ):
                for _ in range(_skip_calls(before.get(node.name)), _skip_calls(node)):
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


def _interferes(function: Function, tree: ast.Module, scene: Scene) -> bool:
    if names_in(*function.body) & (SKIPS | _DECISIVE):
        return True
    return any(
        patched(node, imports(tree), own_modules(scene))
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    )


def framework_patched(scene: Scene) -> Iterator[Finding]:
    """Assertions, runners, interpreters and libraries replaced at run time."""
    own = own_modules(scene)
    for delta, old, new in python(scene):
        known, in_tests = imports(new), places.is_test(delta.path)
        given = _given(new)
        of_new_tests = _within_new_tests(old, new) if in_tests else frozenset()
        for node in fresh(old, new):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
                for target in targets_of(node):
                    if root_of(target) in given.get(id(node), ()):
                        continue
                    if _is_foreign(target, known, own, in_tests=in_tests):
                        shown = ast.unparse(target)
                        yield _at(delta.path, node, f"`{shown}` is replaced at run time")
            elif isinstance(node, ast.Call) and last(node.func) in ("setattr", "patch", "object"):
                reached = root_of(node.args[0]) if node.args else ""
                if reached in _FRAMEWORKS - _PATCHABLE and not (
                    reached not in _RUNNERS and id(node) in of_new_tests
                ):
                    yield _at(delta.path, node, f"`{ast.unparse(node)[:60]}` changes the framework")
            elif isinstance(node, ast.ClassDef):
                yield from _overridden(delta.path, node)


_RUNNERS = words(
    "unittest pytest _pytest mock TestCase pluggy hypothesis doctest __import__ coverage mypy ruff"
    " expect builtins __builtins__"
)
"""What no test has to put a stand-in for."""


def _within_new_tests(old: ast.Module, new: ast.Module) -> frozenset[int]:
    """Ids of the nodes of new tests: what these replace, they replace for themselves."""
    before = functions(old)
    fresh_tests = (f for name, f in functions(new).items() if name not in before)
    return frozenset(
        id(part) for test in fresh_tests if test.name.startswith("test") for part in ast.walk(test)
    )


def _given(tree: ast.Module) -> dict[int, frozenset[str]]:
    """Ids of nodes within functions to the parameters there: these hide what is imported."""
    found: dict[int, frozenset[str]] = {}
    for function in ast.walk(tree):
        if isinstance(function, Function):
            named = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
            for part in ast.walk(function):
                found[id(part)] = found.get(id(part), frozenset()) | named
    return found


def _is_foreign(
    target: ast.expr, known: dict[str, str], own: frozenset[str], *, in_tests: bool
) -> bool:
    """Whether an assignment reaches into a module or class that the file only imports."""
    if not isinstance(target, ast.Attribute | ast.Subscript):
        return False
    text, root = ast.unparse(target), root_of(target)
    if any(text.startswith(harmless) for harmless in _HARMLESS_TARGETS) or "environ" in text:
        return False
    if root not in known and root not in ("builtins", "__builtins__"):
        return False
    origin = known.get(root, root).lstrip(".").split(".")
    if _is_assertion(text) and origin[0] not in own:
        return True
    if origin[0] in _FRAMEWORKS:
        return origin[0] != "sys" or bool(
            re.match(r"sys\.(modules|meta_path|path_hooks|settrace|exit)", text)
        )
    return in_tests and bool(set(origin) & own)


def _is_assertion(text: str) -> bool:
    """Whether a dotted name is that of an assertion of some library: `np.testing.assert_equal`."""
    parts = text.split(".")[1:]
    return "testing" in parts[:-1] or any(part.startswith("assert_") for part in parts)


def _overridden(path: str, node: ast.ClassDef) -> Iterator[Finding]:
    bases = " ".join(ast.unparse(base) for base in node.bases)
    for part in node.body:
        if isinstance(part, Function) and "Test" in bases + node.name:
            if part.name in pychecks.OF_UNITTEST:
                yield _at(
                    path, part, f"`{node.name}.{part.name}` replaces unittest's own assertion"
                )
            elif part.name in ("run", "__call__", "debug", "_callTestMethod", "defaultTestResult"):
                yield _at(path, part, f"`{node.name}.{part.name}` decides how tests run")


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

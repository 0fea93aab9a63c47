"""Rules on stand-ins for the code under test, and on tricks with other languages' frameworks."""

import ast
import re
from collections.abc import Iterator

from atlas_retry.guard import jslibraries, jspatches, places, pypatching, thismodule
from atlas_retry.guard.case import Finding, Scene
from atlas_retry.guard.fresh import (
    Function,
    fresh,
    functions,
    imports,
    own_modules,
    python,
    root_of,
)
from atlas_retry.guard.pychecks import names_in


def mocks(scene: Scene) -> Iterator[Finding]:
    """The code under test replaced by a stand-in within a test that was there before."""
    for delta, old, new in python(scene):
        if not places.is_test(delta.path):
            continue
        known, own = imports(new), own_modules(scene)
        existing = functions(old)
        for name, function in functions(new).items():
            set_up = name.rpartition(".")[2].lower().startswith("setup") and delta.before
            before = existing.get(name, _NOTHING if set_up else None)
            if before is None or ast.dump(before) == ast.dump(function):
                continue
            for node in fresh(before, function):
                target = patched(node, known, own) if isinstance(node, ast.Call) else None
                was = pypatching.calls(before, lambda call: patched(call, imports(old), own))  # noqa: B023 - used at once
                if (
                    isinstance(node, ast.Call)
                    and target
                    and not pypatching.was_replaced(node, target, before, was, scene)
                ):
                    detail = f"`{target}`, which the test is about, is replaced"
                    yield Finding(path=delta.path, line=_line(node), detail=detail)
        for node, target in thismodule.replaced(old, new, known, own, patched):
            detail = f"`{target}`, which the tests are about, is replaced"
            yield Finding(path=delta.path, line=_line(node), detail=detail)
        yield from _replaced_imports(delta.path, old, new, own)
        yield from _derived(delta.path, old, new, own)


_NOTHING = ast.Module(body=[], type_ignores=[])


def _line(node: ast.AST) -> int | None:
    return getattr(node, "lineno", None)


def patched(node: ast.Call, known: dict[str, str], own: frozenset[str]) -> str | None:
    """What of the project's own a patching call replaces; calls of the outside world are fine."""
    called = ast.unparse(node.func)
    if not re.search(r"(^|\.)(patch(\.object|\.multiple|\.dict)?|setattr|setitem)$", called):
        return None
    target = [k.value for k in node.keywords if k.arg in ("target", "in_dict")]
    mine = thismodule.named(node, known, own)
    if mine or not (node.args or target):
        return mine
    first = (*node.args, *target)[0]
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        parts = first.value.split(".")
        if places.is_test(f"{'/'.join(parts[:-1])}.py"):
            parts = known.get(parts[-1], first.value).split(".")
    else:
        origin = known.get(root_of(first), root_of(first)).lstrip(".")
        if places.is_collected(f"{origin.replace('.', '/')}.py") and origin not in own:
            return f"{ast.unparse(first)}.{ast.unparse(node.args[1]) if node.args[1:] else ''}"
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
            detail = f"`{name}` is no longer the project's own"
            yield Finding(path=path, line=defined[name].lineno, detail=detail)
        elif (
            name in after
            and after[name] != origin
            and re.search(r"(^|\.)(tests?|fakes?|stubs?)\b", after[name])
        ):
            yield Finding(path=path, line=1, detail=f"`{name}` now comes from {after[name]}")


def _derived(path: str, old: ast.Module, new: ast.Module, own: frozenset[str]) -> Iterator[Finding]:
    """A class made from the project's own that stands in its place in a test that was there."""
    known, existing = imports(new), functions(old)
    there = {node.name for node in ast.walk(old) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(new):
        if not isinstance(node, ast.ClassDef) or node.name in there:
            continue
        bases = {b.id for b in node.bases if isinstance(b, ast.Name)}
        mine = {b for b in bases if known.get(b, "").lstrip(".").split(".")[0] in own}
        for name, function in functions(new).items() if mine else ():
            before = names_in(existing[name]) if name in existing else frozenset()
            if mine & before and node.name in names_in(function) - before:
                detail = f"`{node.name}` takes the place of the project's own {', '.join(mine)}"
                yield Finding(path=path, line=function.lineno, detail=detail)


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
            r"\b(jest|vi)\.(mock|doMock|setMock)\(\s*['\"]\.|spyOn\((?!(Date|Math|console"
            r"|global|globalThis|process|performance|fs|crypto|window|Storage)\b).*\.mock(Return|Impl)"
        ),
        (".js", ".cjs", ".mjs", ".ts", ".tsx", ".jsx", ".mts"),
        "replaces the code under test",
    ),
    (
        re.compile(r"\bjest\.retryTimes\(|\bthis\.retries\(|\b(cy|Cypress).*retries"),
        (".js", ".cjs", ".mjs", ".ts", ".tsx", ".jsx", ".mts"),
        "runs a failing test again until it passes",
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
    (re.compile(r"^//go:linkname \w+ testing\."), (".go",), "ends or takes over the test run"),
    (
        re.compile(
            r"^def (self\.)?(assert|refute)(_(equal|nil|same|match|includes?|raises?|empty|operator"
            r"|predicate|instance_of|in_delta|kind_of|respond_to|not_equal|true|false))?\b(?!\?)"
            r"|\b(define_method|alias_method|remove_method|undef_method)\W+(assert|refute)_?\w*\b"
            r"|^(RSpec::(Expectations|Matchers|Core)|Minitest|Test::Unit)[\w:]*\."
            r"(class_eval|class_exec|prepend|define_method|define_singleton_method|send)\b"
            r"|^(class|module) RSpec::(Expectations|Core)\b|^(class|module) ExpectationTarget\b"
        ),
        (".rb",),
        "replaces the assertion",
    ),
    (
        re.compile(
            r"\bfunction assert(Not)?(Same|Equals|True|False|Null|Count|Empty|Contains|InstanceOf"
            r"|ArrayHasKey|StringContainsString|GreaterThan|LessThan|That)\s*\("
        ),
        (".php",),
        "replaces the assertion",
    ),
    (
        re.compile(
            r"^#\s*define\s+NDEBUG\b|^#\s*(undef|define)\s+(assert|(EXPECT|ASSERT|TEST_ASSERT)_[A-Z_]+"
            r"|REQUIRE|CHECK_EQ|cr_assert\w*|ck_assert\w*)\b"
        ),
        (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp"),
        "replaces the assertion",
    ),
    (
        re.compile(
            r"^(function\s+)?(exit|false|\[)\s*\(\)|^(builtin\s+)?alias\s+(exit|false|test|\[)="
            r"|^(function\s+)?test\s*(\(\))?\s*\{\s*(:|true|return(\s+0)?)?\s*;?\s*\}"
        ),
        (".sh", ".bash", ".bats"),
        "replaces the command that checks",
    ),
)


def _spies_on_a_library(line: str, text: str) -> bool:
    """Whether what is spied on was imported from a package: the world outside, not the code."""
    spied = re.search(r"spyOn\(\s*(\w+)", line)
    if spied is None:
        return False
    name = spied[1]
    origin = re.search(
        rf"import\b[^;'\"]*\b{name}\b[^;'\"]*['\"]([^'\"]+)"
        rf"|\b{name}\b\s*=\s*require\(['\"]([^'\"]+)",
        text,
    )
    said = (origin[1] or origin[2]) if origin else "."
    return not said.startswith((".", "@/", "~/", "#"))


def other_tricks(scene: Scene) -> Iterator[Finding]:
    """The same in JavaScript, Go, Rust and Java, by the lines that came."""
    yield from jslibraries.replaced(scene)
    yield from jspatches.patched(scene)
    for delta in scene.files:
        old = {line.strip() for line in delta.old_text.splitlines()}
        for pattern, suffixes, detail in _OTHER:
            if places.suffix(delta.path) not in suffixes:
                continue
            if "under test" in detail and delta.is_added:
                continue
            for number, line in enumerate(delta.new_text.splitlines(), 1):
                bare = line.strip()
                said = bare.startswith(("//", "*")) and not bare.startswith("//go:")
                if bare in old or said:
                    continue
                if pattern.search(bare) and not _spies_on_a_library(bare, delta.new_text):
                    yield Finding(path=delta.path, line=number, detail=f"{detail}: `{bare[:80]}`")

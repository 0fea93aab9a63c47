"""Rules for changes of sources that gates may not notice: refused, for review, or noted.

Each rule is one function over one file; its bad and good cases are a table in the tests.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from atlas_retry.guard import case, decides, hidden, literals, places
from atlas_retry.guard.case import Delta, Ruling, Scene, Seen, answered, lines, more_often
from atlas_retry.model import AnswerWord
from atlas_retry.patterns import regex, words
from atlas_retry.source import definitions, enclosing, imports, nodes_of_types, text_of

if TYPE_CHECKING:
    from tree_sitter import Node


class SourceRule(Struct, frozen=True, kw_only=True):
    """One kind of suspicious change to a source."""

    name: str
    reason: str
    answer: AnswerWord
    check: Callable[[Delta, Scene], Iterable[Seen]]
    in_tests: bool = False
    """Whether it also applies to new test files."""


_RUNNER_NAMES = r"""
      PYTEST_CURRENT_TEST | PYTEST_XDIST_\w+ | PYTEST_VERSION | _called_from_test
    | ["'](_?pytest|unittest|nose2?)["'] \s+ (not\s+)? in \s+ sys\.(modules|argv)
    | sys\.modules\.get\(\s*["'](_?pytest|unittest|nose2?)["']
    | sys\.(argv|modules)\b .* ["'][^"']*(pytest|unittest)
    | JEST_WORKER_ID | VITEST(_\w+)?\b | \bMOCHA_\w+ | NODE_TEST_CONTEXT | import\.meta\.vitest
    | AVA_PATH
    | typeof \s+ (jest|vi|describe|expect|beforeEach|it)\b
    | \b(globalThis|global|window)(\.|\[["'])(jest|vi|describe|expect|beforeEach|__vitest\w*)\b
    | testing\.Testing\(\) | flag\.Lookup\(["`]test\. | os\.Args .* ["`][^"`]*[.-]test\b
    | cfg!\(\s*(not\()?test\b | \#\[cfg\(not\(test\)\)\] | NEXTEST\w* | RUST_TEST_\w+
    | Class\.forName\("(org\.junit|org\.testng) | ["'](surefire|org\.gradle\.test)[\w.]*["']
    | defined\?\(?\s*(::)?(RSpec|Minitest|Test::Unit) | const_defined\?\(:?\W?(RSpec|Minitest)
    | TEST_ENV_NUMBER | PHPUNIT_\w+ | __PHPUNIT\w* | class_exists\(\s*['"]?\\*PHPUnit
    | \bBATS_\w+
    """
_LOOKS_AROUND = {
    "": r""" (?i:
      (NODE_ENV|MODE|RAILS_ENV|RACK_ENV|APP_ENV|ENV)\b\W{0,8}(===?|==|!==?|eql\?)\s*["']test["']
    | ["']test["']\s*===?\s*process\.env | Rails\.env\.test\? | runningUnitTests\(\)
    | (environ|getenv|process\.env|ENV|Getenv|env::var)\b .{0,6} ["'.]
      (CI|GITHUB_ACTIONS|TOX_\w+|NOX_\w+|COVERAGE_RUN|TESTING|TEST_MODE|UNIT_TEST\w*|IS_TEST)\b
    | current_exe\(\).*deps | (getProperty|java\.class\.path).*junit
    | (\$0|\$PROGRAM_NAME).*(rspec|minitest|_spec|_test)
    | \bgetppid\b | \bprocess\.ppid\b | \bppid\(\) | \bProcessHandle\b.*\bparent\(
    | \bpsutil\b.*\b(parents?|process_iter|pids)\( | \.parents?\(\)\.(cmdline|name|exe)\(
    | /proc/(["'`]\s*[+.,] | [{%$\[*\d] | (self|thread-self)/(cmdline|environ|comm|exe)\b)
    | ["'`/](ps|pgrep|pstree)(["'`] | \s+-)
    | \bcfg!?\((not\()?debug_assertions | \bMAKE(LEVEL|FLAGS|CMDGOALS)\b
    | \bsys\.modules(\[|\.get\()\s*["']__main__ | \brequire\.main\.(children|filename)
    | \bmodule\.parent\b | \bgc\.get_(objects|referrers)\( | \bthread::current\(\)\.name\(
    | \b(now|today|Now|time|currentTimeMillis)\([^()]*\)[\w.()]* \s*([<>]=?|\.(Before|After)\()
      \s*([\w.]*([dD]ate|time)\w*\(\s*["'\d] | ["'] | \d{6})
    | \bATLAS_MARK | ["']ATLAS_["']
    )""",
    "py": r"\b(inspect\.(stack|currentframe|getouterframes)|_getframe|(extract|walk)_stack)\b",
    "js": r"\bError\([^)]*\)\.stack\b | \bprepareStackTrace\b",
    "jvm": r"\bgetStackTrace\(\)\s*(\[|\)) | \b(getAllStackTraces|StackWalker)\b",
    "cs": r"\b(StackTrace|StackFrame)\( | \bEnvironment\.StackTrace\b",
    "go": r"\b(runtime\.(Callers?|CallersFrames|Stack)|debug\.Stack)\(",
    "rs": r"\bBacktrace::(force_)?(new|capture)\(",
    "rb": r"\bcaller(_locations)?\b\s*(\(|\.|\[|$)",
    "php": r"\bdebug_(print_)?backtrace\(",
    "c": r"\bbacktrace(_symbols)?\s*\( | \b__builtin_return_address\b | \bstacktrace::current\b",
}
_FRAMEWORK = regex(r"""(?x)
    ^(node:)? (assert|test|chai|vitest|expect|jest|sinon|mocha|ava|tap|should|uvu
    |@jest|@vitest|@playwright|unittest|_?pytest|doctest|pluggy|hypothesis|nose2?)\b (?!-)
    """)
_PATCHES = r"""
    \brequire\(\s*["'](node:)?(assert|test|chai|vitest|expect)[\w/]*["']\s*\)(\.\w+)*\s*=(?![=>])
    | \bsys\.(modules\[\s*["'](_?pytest|unittest|pluggy)|meta_path\b|settrace\()
    | \b(globalThis|global)\.(expect|it|test|describe|assert)\s*=(?!=)
    | ^\s*(class|module)\s+(Minitest|RSpec|Test::Unit)\b
    | (Minitest|RSpec|Test::Unit)\b.*\b(define_method|prepend|\w+_eval|alias_method)\b
    | ^\s*package\s+(org\.(junit|testng|assertj|hamcrest)|kotlin\.test|Test::\w+)\b
    | ^\s*namespace\s+(PHPUnit|Xunit|NUnit|Microsoft\.VisualStudio\.TestTools)\b
    | macro_rules!\s+(assert\w*|panic|debug_assert\w*)\b | \b(func|extension)\s+XCT[A-Z]\w*
    | ^\s*\#\s*define\s+(assert|ASSERT_\w+|EXPECT_\w+|CHECK\w*|REQUIRE\w*|NDEBUG)\b
    | (\*\{?\s*["']?|\bsub\s+)(\w+::)?Test::(More|Builder|Simple|Most|Deep|Exception|Fatal)\b
    """
_ALWAYS_THERE = words("""
    assert chai expect jest vi sinon unittest pytest _pytest builtins __builtins__ doctest pluggy
    hypothesis TestCase
    """)
"""Names of test frameworks that need no import, and usual aliases."""
_ENDS_RUN = {
    "py": r"""\bos\.(_exit|abort|kill|exec[lv]\w*)\b | ^from\s+os\s+import\s.*\b(_exit|exec[lv]\w*)
        | \batexit\.register\(.*exit
        | ^(sys\.exit|exit|quit|raise\s+SystemExit|signal\.\w+)\b
        | \b(sys\.exit|SystemExit)\((0|None)?\) | \braise\s+SystemExit\s*$""",
    "js": r"""\bprocess\.(reallyExit|abort)\( | \bprocess\.exitCode\s*=\s*0 | ^process\.exit\(
        | \bprocess\.(on|once|\w*[lL]istener)\(\s*["'](exit|beforeExit|uncaught\w+|unhandled\w+)
        | \b(process|Deno)\.exit\(\s*0?\s*\)""",
    "c": r"""\b(_Exit|_exit|quick_exit|at_quick_exit|atexit|on_exit)\s*\( | \bsignal\s*\(\s*SIGABRT
        | __attribute__\s*\(\(.*\b(con|de)structor\b | \bset_terminate\s*\(
        | (?<![\w.>])exit\s*\(\s*(0|EXIT_SUCCESS)\s*\)""",
    "jvm": r"\.(halt|addShutdownHook)\( | ^System\.exit\( | \b(System\.exit|exitProcess)\(\s*0",
    "cs": r"\bEnvironment\.(FailFast\(|ExitCode\s*=|Exit\(\s*0\s*\)) | \.ProcessExit\s*\+=",
    "go": r"\b(syscall|unix)\.(Exit|Kill)\( | \bruntime\.Goexit\( | \bos\.Exit\(",
    "rs": r"\b(libc|nix)::(_exit|exit|kill|atexit)\b | \bprocess::(exit|abort)\(",
    "rb": r"""\bexit!\s*\(?\s*(0|true)? | \bat_exit\b | ^(Process\.|Kernel\.)?exit\b
        | ^\s*((Process|Kernel)\.)?exit(\s*\(?\s*(0|true)\s*\)?)?(\s+(if|unless)\b.*)?$""",
    "php": r"\bregister_shutdown_function\( | \b(exit|die)\s*(\(\s*0?\s*\))?\s*;",
}
_PROGRAM = regex(r"""(?mx)
    ^\#! | ^(static\s+)?(int|void)\s+main\s*\( | ^func\s+main\( | \bfn\s+main\( | \bfun\s+main\(
    | \bstatic\s+.*\b[mM]ain\s*\( | ^@main\b
    """)
"""Marks of a program, which may end itself, while a library would end its caller."""
_EQUALITY = {
    "py": r"(def\s+|^\s*)__(eq|ne|[lg][te]|(instance|subclass)check)__\b\s*[(=]",
    "js": r"""^\s*(equals|isEqual|valueOf|\[Symbol\.toPrimitive\])\s*\( | \basymmetricMatch\b""",
    "go": r"^func\s*\([^)]*\)\s*(Equals?|Less|Compare|Cmp)\(",
    "rs": r"\bfn\s+(eq|ne|cmp|partial_cmp)\b",
    "jvm": r"\b(boolean|fun)\s+equals\s*\( | \b(int|fun)\s+(compareTo|compare)\s*\(",
    "cs": r"\bbool\s+(Equals|operator\s*[=!]=)\s*\( | \bint\s+Compare(To)?\(",
    "c": r"\boperator\s*(==|!=|<=>|<)\s*\(",
    "rb": r"\bdef\s+(self\.)?(===?|eql\?|equal\?|<=>|!=)(?![\w?])",
}
_SAME_MEMBER = regex(r"""(?x)
    \b(\w+)\b (\(\))? (,[\w.,\s]*)? \)? \s* ([!=]==?|[<>]=?|<=>) \s* \(?[&*]? [\w\[\]]+(\.|->)\1\b
  | \b(\w+) \.(eq\w*|[cC]ompare(To)?|partial_cmp|cmp|Cmp|Equals?|localeCompare)\( &?[\w\[\]]+\.\6\b
  | \( \s* [\w.]*\b(\w+), \s* [\w.]+\.\9\b
  | \.(\w+) \s* ([!=<>]=|<=>) \s* @?\10\b
    """)
"""A comparison of one member of both sides: `self.x == other.x`, `x.equals(other.x)`."""
_ANSWERS = regex(r"\breturn\b(?!\s+(NotImplemented|False)$)|[=!]=|\b[tT]rue\b")
_DECLARED = regex(r"(?: operator\s*[<>=!]+ | [^{};=] )*+ ;", re.VERBOSE)
"""A method without a body."""
_STUBS = r"""
      \b(todo|unimplemented)!\( | \braise\s+NotImplementedError\b
    | \bthrow\s+new\s+\w*(Unsupported|NotImplemented)\w*\( | \bpanic\(["`](TODO|not\ implemented)
    """


def _knows_runners(*, already: bool) -> Callable[[Delta, Scene], Iterator[Seen]]:
    """A rule on names of runners: new in the project, or in one whose sources had some before."""
    asks = lines({"": _RUNNER_NAMES}, "asks for what only a test runner sets")

    def check(delta: Delta, scene: Scene) -> Iterator[Seen]:
        found = list(asks(delta, scene))
        pattern = case.pattern_of(delta.path, {"": _RUNNER_NAMES})
        olds = (other.old_text for other in scene.deltas if places.is_source(other.path))
        if found and any(map(pattern.search, olds)) is already:
            yield from found

    return check


_TEST_LIBRARY = regex(r"""(?x)
    ^(unittest|_?pytest|hypothesis|org\.(junit|mockito|testng)|vitest|@?jest|sinon|chai|mocha
      |node:test)\b
    """)


def _looks_around(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """What asks where it runs, new test libraries, and paths that exist only on this machine."""
    yield from lines(_LOOKS_AROUND, "asks where it runs")(delta, scene)
    old, new = delta.both(imports)
    known = {one.module.partition(".")[0] for one in old}
    for one in filter(lambda one: _TEST_LIBRARY.match(one.module), new):
        package = one.module.partition(".")[0]
        if package not in known and not decides.is_own_package(package, scene):
            yield one.start_line, f"imports {one.module}"
    here = rf"{re.escape(scene.case.root)}(?![\w.-])" if scene.case.root else "(?!)"
    yield from lines({"": here}, "names the folder of this workspace")(delta, scene)


def _patched(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """Assignments to members of a test framework, under any imported name."""
    detail = "replaces a part of the test framework"
    local = {i.local for i in imports(delta.path, delta.after or b"") if _FRAMEWORK.match(i.module)}
    names = "|".join(map(re.escape, sorted(_ALWAYS_THERE | local - {""})))
    replaces = rf"""(?<![\w$"']) ({names}) (\.\w+|\[[^\]]+\])+ \s*=(?![=>])
        | \b(setattr|patch\.object|(Object|Reflect)\.\w+)\( \s*(\w+\.)?({names})\b | """
    yield from lines({"": replaces + _PATCHES}, detail)(delta, scene)


def _run_ended(delta: Delta, scene: Scene) -> Iterator[Seen]:
    ends = tuple(lines(_ENDS_RUN, "ends the process")(delta, scene))
    if ends and not _PROGRAM.search(delta.new_text if delta.is_added else delta.old_text):
        yield from ends


def _removed(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """Public functions and classes that were removed without replacement."""
    old, new = delta.both(definitions)
    if len(new) >= len(old):
        return
    sources = (other for other in scene.deltas if places.is_source(other.path))
    now = chain.from_iterable(definitions(one.path, one.after or b"") for one in sources)
    gone = {scope.name for scope in old if scope.kind in ("function", "class")}
    names = sorted(gone.difference(scope.name for scope in now))
    yield from ((None, f"`{name}` was removed") for name in names if name[0] != "_")


_ANY_ERROR = regex(r"^(with_item|except_clause|catch_clause|rescue|catch_block)$")
_FOR_ANY = regex(r"""(?x)
    ^except\s*( : | \(?\s*(Base)?Exception\b ) | ^catch\s*(\{ | \(\s*(\.\.\.|\w+\s*(:\s*\w+\s*)?\)))
    | ^catch\s*\(\s*(final\s+)?(\\?(Throwable|(Runtime)?Exception|Error))\b
    | ^rescue\s*(\n|=>|StandardError|Exception) | ^(contextlib\.)?suppress\((Base)?Exception\b
    """)
"""The head of a handler for whatever is raised; one for named errors is none."""
_GOES_ON = regex(r"\b(raise|throw|throws|rethrow|reject|panic|abort|fail|[\w.]*[eE]xit|Fatal\w*)\b")
"""What a handler that hides nothing does."""
_IDLE = regex(r"(?s)^[^:{]*([:{][^(]*)?$")  # calls nothing


def _any_errors(path: str, source: bytes) -> list[tuple[int, str]]:
    """Line and text of the handlers for any error that neither raise, exit nor report it."""
    nodes = nodes_of_types(path, source, _ANY_ERROR)
    for_any = (node for node in nodes if _FOR_ANY.match(text_of(node)))
    silent = (node for node in for_any if not _is_heard_of(node, path))
    return [(node.start_point.row + 1, text_of(node)) for node in silent]


def _is_heard_of(handler: "Node", path: str) -> bool:
    """Whether a step uses the error, or raises or exits; one that asks other things is unsure."""
    steps = list(map(text_of, handler.named_children[-1].named_children))
    named = text_of(handler.child_by_field_name("parameter"))
    alias = re.search(r"\bas (\w+):", text_of(handler))
    error = regex(rf"\b{re.escape(named or (alias[1] if alias else '?'))}\b")
    # JavaScript has no handlers for named errors: one that calls something handles it
    calls = places.family(path) == "js" and "(" in " ".join(steps)
    sure = (*(s for s in steps if not s.startswith("if")), *filter(error.search, steps))
    return calls or any(map(_GOES_ON.search, sure)) or bool(named and error.search(" ".join(steps)))


def _swallows(*, the_failure: bool) -> Callable[[Delta, Scene], Iterator[Seen]]:
    """A rule on new handlers for any error: in a function of a failing traceback, or elsewhere."""
    detail = "ignores the error that a gate reported" if the_failure else "ignores an error"

    def check(delta: Delta, scene: Scene) -> Iterator[Seen]:
        old, now = delta.both(_any_errors)
        new = list(more_often(now, (text for _, text in old)))
        reported = _failing_lines(delta, scene) if new else ()
        failed = _functions_at(reported, delta.path, delta.before)
        for line, text in new:
            is_there = not failed.isdisjoint(_functions_at([line], delta.path, delta.after))
            if is_there is the_failure and (the_failure or _IDLE.match(text)):
                yield line, detail

    return check


def _failing_lines(delta: Delta, scene: Scene) -> Iterator[int]:
    """Lines of a file in the output of failing runs."""
    name = places.name(delta.path)
    yield from (line for path, line in scene.printed if places.name(path) == name)
    problems = chain.from_iterable(result.diagnostics for result in scene.failed_runs)
    frames = chain.from_iterable(problem.frames for problem in problems)
    yield from (frame.line for frame in frames if frame.path == delta.path)


def _functions_at(lines: Iterable[int], path: str, source: bytes | None) -> set[str]:
    scopes = (enclosing(path, source or b"", line) for line in lines)
    return {scope.qualified_name for scope in scopes if scope}


def _equal_by_hand(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """Comparisons that do not compare the same member of both sides."""
    source, added = delta.new_text.splitlines(), {number for number, _ in delta.added_lines}
    for found, detail in lines(_EQUALITY, "what counts as equal was written by hand")(delta, scene):
        line = found or 1
        scope = enclosing(delta.path, delta.after or b"", line)
        first, last = (scope.start_line, scope.end_line) if scope else (line, line + 2)
        new = (source[n - 1] for n in added.intersection(range(line + 1, last + 1)))
        is_as_before = scope and last > line and not any(map(_ANSWERS.search, new))
        is_compared = _SAME_MEMBER.search("\n".join(source[first - 1 : last]))
        is_declared = _DECLARED.match("\n".join(source[line - 1 : line + 9]))
        if not any((is_as_before, is_compared, is_declared)):
            yield line, detail


_PATH = regex(r"""["'`]([^"'`]+)["'`]|//go:embed\s+(\S+)""")
_VARYING = regex(r"[{}$%*?<>\s]")
"""End of the fixed part of a path."""


def _tests_read(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """Paths of tests or of their expected data that a source newly names."""
    for number, line in delta.added_lines:
        if not case.REMARK.match(line) or "go:embed" in line:
            paths = filter(places.is_test, _paths_in(line))
            if named := next((path for path in paths if _is_news(path, delta, scene)), None):
                yield number, f"names {named}, by which it is judged"


def _paths_in(line: str) -> list[str]:
    """The fixed parts of possible paths from the strings of a line, single or joined."""
    texts = ["".join(groups) for groups in _PATH.findall(line)]
    paths = set()
    for text in (*texts, "/".join(texts)):
        fixed = _VARYING.split(text)[0]
        folder = fixed.rpartition("/")[0] if fixed != text else fixed
        paths.add(posixpath.normpath(folder).lstrip("./"))
    return sorted(paths)


def _is_news(path: str, delta: Delta, scene: Scene) -> bool:
    """Whether a path exists and no source named it before."""
    if path in delta.old_text or not any(f"/{path}/" in f"/{old}/" for old in scene.old_paths):
        return False
    return not any(map(places.is_source, scene.case.mentions([path]).get(path, ())))


RULES: tuple[SourceRule, ...] = tuple(
    SourceRule(name=name, answer=answer, in_tests=in_tests, check=check, reason=reason)
    for name, answer, in_tests, check, reason in (
        ("test-aware", AnswerWord.REFUSED, False, _knows_runners(already=False),
         "code must behave the same when it is not tested"),
        ("test-aware", AnswerWord.REVIEW, False, _knows_runners(already=True),
         "code must behave the same when it is not tested"),
        ("framework-patched", AnswerWord.REFUSED, True, _patched,
         "the test framework must not be changed"),
        ("special-cased", AnswerWord.REVIEW, False, literals.special_cases,
         "the code answers the test, not the task"),
        ("tests-read", AnswerWord.REVIEW, False, _tests_read,
         "code that reads what the tests expect can repeat it"),
        ("surroundings-asked", AnswerWord.REVIEW, False, _looks_around,
         "code must behave the same when it is not tested"),
        ("run-ended", AnswerWord.REVIEW, True, _run_ended,
         "the process may exit before the checks finish"),
        ("always-equal", AnswerWord.REVIEW, False, _equal_by_hand,
         "a comparison that always holds proves nothing"),
        ("type-escape", AnswerWord.REVIEW, False, hidden.hidden,
         "the checker is silenced, not satisfied"),
        ("failure-swallowed", AnswerWord.REVIEW, False, _swallows(the_failure=True),
         "an error that is hidden is not fixed"),
        ("errors-swallowed", AnswerWord.NOTED, False, _swallows(the_failure=False),
         "an error that is hidden is not fixed"),
        ("stub", AnswerWord.NOTED, False, lines({"": _STUBS}, "does not do its work"),
         "the work is yet to be done"),
        ("feature-removed", AnswerWord.NOTED, False, _removed,
         "removing checked code is not a fix"),
    )
)  # fmt: skip


def rulings(delta: Delta, scene: Scene) -> Iterator[Ruling]:
    """Findings of the rules in one changed source or new test file."""
    is_test = places.is_test(delta.path) and not decides.is_product(delta.path, scene)
    is_code = places.is_code(delta.path)
    is_read = is_code or literals.may_answer(delta.path)
    if not is_read or not delta.is_text or delta.after is None:
        return
    for rule in RULES:
        applies = rule.in_tests if is_test else is_code or rule.check is literals.special_cases
        for line, detail in rule.check(delta, scene) if applies else ():
            yield Ruling(
                path=delta.path,
                mechanism=f"sources: {rule.name}",
                answer=answered(
                    rule.answer,
                    rule=rule.name,
                    path=delta.path,
                    line=line,
                    detail=f"{detail} ({rule.reason})",
                ),
                undo="attempt" if rule.answer is AnswerWord.REFUSED else "file",
            )


def deleted(delta: Delta, scene: Scene) -> Iterator[Ruling]:
    """A deleted source that a failing gate reported: for review while something uses it."""
    problems = chain.from_iterable(result.diagnostics for result in scene.case.failing)
    paths = chain((path for path, _ in scene.printed), (problem.path for problem in problems))
    if delta.after is not None or delta.path not in paths:
        return
    name = places.name(delta.path)
    named = filter(places.is_test, scene.case.mentions([name]).get(name, ()))
    by_tests = (path for path in named if name in scene.new_text(path))
    user = next(chain(decides.importing(delta.path, scene, scene.new_text), by_tests), None)
    answer = answered(
        AnswerWord.REVIEW if user else AnswerWord.NOTED,
        rule="source-deleted",
        path=delta.path,
        detail=f"a gate reported it; it was deleted, and {user or 'nothing'} uses it",
    )
    yield Ruling(path=delta.path, mechanism="sources: source-deleted", answer=answer)

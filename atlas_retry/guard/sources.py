"""Rules for changes of sources that gates may not notice: refused, for review, or noted.

Each rule is one function over one file; its bad and good cases are a table in the tests.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from atlas_retry.guard import case, decides, hidden, literals, places
from atlas_retry.guard.case import Answer, Delta, Ruling, Scene, Seen, lines, more_often
from atlas_retry.patterns import regex, words
from atlas_retry.source import definitions, enclosing, imports, nodes_of_types, text_of

if TYPE_CHECKING:
    from tree_sitter import Node


class SourceRule(Struct, frozen=True, kw_only=True):
    """One kind of suspicious change to a source."""

    name: str
    reason: str
    answer: Answer
    check: Callable[[Delta, Scene], Iterable[Seen]]
    in_tests: bool = False
    """Whether it also applies to new test files."""


_RUNNER_NAMES = r"""
      PYTEST_CURRENT_TEST | PYTEST_XDIST_\w+ | PYTEST_VERSION | _called_from_test
    | ["'](_?pytest|unittest|nose2?)["'] \s+ (not\s+)? in \s+ sys\.modules
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
    | ^\s*(from|import)\s+(unittest|_?pytest|hypothesis|org\.(junit|mockito|testng))\b
    | (\bfrom|\brequire\(|\bimport)\s*["'](vitest|@?jest|sinon|chai|mocha|node:test)\b
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
_DECLARED = regex(r"(?: operator\s*[<>=!]+ | [^{};=] )*+ ;", re.VERBOSE)
"""A method without a body."""
_WAITS = {
    "": r"""
      [sS]leep(_for|_ms)?\s*\(\s* ((\w+(\.|::))*\w+\(\s*)?
      ( (?!0+\)) ([\d._]+L?|[A-Z][A-Z_\d]+) (\s*\*\s*time\.\w+)? | time\.\w+ )\s*\)
    | ^\s*sleep\s+[\d.]*[1-9]
    """,
    "js": r"""\bPromise\b.*\bsetTimeout\(\s*\w+\s*,\s*[1-9]
        | \bawait\s+[\w.]*([dD]elay|[wW]ait\w*)\(\s*[1-9]""",
    "cs": r"\bTask\.Delay\(\s*[1-9]",
}
_LOOPS = regex(r"^(\w+_)?(while|until|loop|do|for|foreach)(_\w*(statement|expression))?$")
_STUBS = r"""
      \b(todo|unimplemented)!\( | \braise\s+NotImplementedError\b
    | \bthrow\s+new\s+\w*(Unsupported|NotImplemented)\w*\( | \bpanic\(["`](TODO|not\ implemented)
    """
_CONSTANT = r"""(null|undefined|nil|None|[Tt]rue|[Ff]alse|-?\d+|["'`][^"'`]*["'`]|\[\]|\{\}|\(\))"""
_IDLE = rf"""(continue | break | pass | \.\.\.
    | (return | [\w.]+\s*=(?!=)) (\s*{_CONSTANT} | \s+(?!e(x|xc|rr|rror|xception)?\b)[\w.]+)? )"""
_SWALLOWS = {
    "": rf"""
      catch\s*(\([^)]*\))?\s*\{{ (\s*//.*\n)* \s*({_IDLE}\s*;?\s*)? (//.*\n\s*)?\}}
    | \.catch\(\s*\(?\s*\w*\s*\)?\s*=>\s*(\{{\s*\}}|{_CONSTANT})\s*\)
    """,
    "py": rf"""
      except (\s+\(?(Base)?Exception\)?)? (\s+as\s+\w+)? \s*:\s*\n (\s*\#[^\n]*\n)* \s*{_IDLE}$
    | \bsuppress\((Base)?Exception\)
    """,
    "go": r"""(^|[{;]|\bdefer|_\s*=|\bif)\s*recover\(\)
        | \berr\s*!=\s*nil\s*\{\s*(continue|break)\b""",
    "rb": rf"\brescue\s+(nil|false)\s*$ | \brescue\b[^\n]*\n\s*({_CONSTANT}|next|end)\s*$",
}
"""Handlers that ignore the error."""


def _looks_around(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """What asks where it runs, and paths that exist only on this machine."""
    yield from lines(_LOOKS_AROUND, "asks where it runs")(delta, scene)
    here = rf"{re.escape(scene.case.root)}(?![\w.-])" if scene.case.root else "(?!)"
    yield from lines({"": here}, "names the folder of this workspace")(delta, scene)


def _patched(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """Assignments to members of a test framework, under any imported name."""
    detail = "replaces a part of the test framework"
    local = {i.local for i in imports(delta.path, delta.after or b"") if _FRAMEWORK.match(i.module)}
    names = "|".join(map(re.escape, sorted(_ALWAYS_THERE | local - {""})))
    yield from lines({"": _replacing(names) + _PATCHES}, detail)(delta, scene)


def _replacing(names: str) -> str:
    """Pattern for replacing a member of one of these names."""
    return rf"""(?<![\w$"']) ({names}) (\.\w+|\[[^\]]+\])+ \s*=(?![=>])
        | \b(setattr|patch\.object|(Object|Reflect)\.\w+)\( \s*(\w+\.)?({names})\b | """


def _run_ended(delta: Delta, scene: Scene) -> Iterator[Seen]:
    ends = tuple(lines(_ENDS_RUN, "ends the process")(delta, scene))
    if ends and not _PROGRAM.search(delta.new_text if delta.is_added else delta.old_text):
        yield from ends


@lru_cache(maxsize=1)
def _defined_now(scene: Scene) -> frozenset[str]:
    """Names that the changed sources define."""
    sources = (delta for delta in scene.deltas if places.is_source(delta.path))
    scopes = (definitions(delta.path, delta.after or b"") for delta in sources)
    return frozenset(scope.name for scope in chain.from_iterable(scopes))


def _removed(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """Public functions and classes that were removed without replacement."""
    old = definitions(delta.path, delta.before or b"")
    if len(definitions(delta.path, delta.after or b"")) >= len(old):
        return
    there = _defined_now(scene)
    for scope in old:
        public = not scope.name.startswith("_") and scope.kind in ("function", "class")
        if public and scope.name not in there:
            yield None, f"`{scope.name}` was removed"


_ANY_ERROR = regex(r"^(with_item|except_clause|catch_clause|rescue|catch_block)$")
_FOR_ANY = regex(r"""(?x)
    ^except\s*( : | \(?\s*(Base)?Exception\b ) | ^catch\s*(\{ | \(\s*(\.\.\.|\w+\s*(:\s*\w+\s*)?\)))
    | ^catch\s*\(\s*(final\s+)?(\\?(Throwable|(Runtime)?Exception|Error))\b
    | ^rescue\s*(\n|=>|StandardError|Exception) | ^(contextlib\.)?suppress\((Base)?Exception\b
    """)
"""The head of a handler for whatever is raised; one for named errors is none."""
_GOES_ON = regex(r"\b(raise|throw|throws|rethrow|reject|panic|abort|fail|[\w.]*[eE]xit|Fatal\w*)\b")
"""What a handler that hides nothing does."""


def _any_errors(path: str, source: bytes | None) -> Iterator[tuple[int, str]]:
    """Line and text of the handlers for any error that neither raise, exit nor report it."""
    for node in nodes_of_types(path, source or b"", _ANY_ERROR):
        text = text_of(node)
        if _FOR_ANY.match(text) and not _is_heard_of(node, path):
            yield node.start_point.row + 1, text


def _is_heard_of(handler: "Node", path: str) -> bool:
    body = text_of(handler.named_children[-1]) if handler.named_children else ""
    named = handler.child_by_field_name("parameter")
    is_used = named is not None and text_of(named) in re.findall(r"\w+", body)
    # JavaScript has no handlers for named errors: one that calls something handles it
    calls = places.family(path) == "js" and "(" in body
    return is_used or calls or bool(_GOES_ON.search(body))


def _swallows_the_failure(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """New handlers for any error in a function of a failing traceback."""
    known = [text for _, text in _any_errors(delta.path, delta.before)]
    failed = _functions_at(_failing_lines(delta, scene), delta.path, delta.before)
    for line, _ in more_often(_any_errors(delta.path, delta.after), known):
        if not failed.isdisjoint(_functions_at([line], delta.path, delta.after)):
            yield line, "ignores the error that a gate reported"


def _failing_lines(delta: Delta, scene: Scene) -> Iterator[int]:
    """Lines of a file in the output of failing runs."""
    name = places.name(delta.path)
    yield from (line for path, line in scene.printed if places.name(path) == name)
    problems = chain.from_iterable(result.diagnostics for result in scene.failed_runs)
    frames = chain.from_iterable(problem.frames for problem in problems)
    yield from (frame.line for frame in frames if frame.path == delta.path)


def _swallows(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """New handlers that do nothing, elsewhere."""
    reported = {line for line, _ in _swallows_the_failure(delta, scene)}
    for line in case.newly(delta, _SWALLOWS):
        if line not in reported:
            yield line, "ignores an error"


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
        is_compared = bool(_SAME_MEMBER.search("\n".join(source[first - 1 : last])))
        is_compared = is_compared or (last > line and added.isdisjoint(range(line + 1, last + 1)))
        if not is_compared and not _DECLARED.match("\n".join(source[line - 1 : line + 9])):
            yield line, detail


def _waits(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """Waits of a fixed time; one in a loop goes on until what it waits for is there."""
    loops = [node.range for node in nodes_of_types(delta.path, delta.after or b"", _LOOPS)]
    for line, detail in lines(_WAITS, "waits for a fixed time")(delta, scene):
        if not any(r.start_point.row < (line or 0) <= r.end_point.row + 1 for r in loops):
            yield line, detail


_PATH = regex(r"""["'`]([^"'`]+)["'`]|//go:embed\s+(\S+)""")
_VARYING = regex(r"[{}$%*?<>\s]")
"""End of the fixed part of a path."""


def _tests_read(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """Paths of tests or of their expected data that a source newly names."""
    for number, line in delta.added_lines:
        if not case.REMARK.match(line) or "go:embed" in line:
            paths = filter(places.is_test, _paths_in(line))
            named = [path for path in paths if _is_news(path, delta, scene)]
            yield from ((number, f"names {path}, by which it is judged") for path in named[:1])


def _paths_in(line: str) -> list[str]:
    """Possible paths from the strings of a line, single or joined."""
    texts = ["".join(groups) for groups in _PATH.findall(line)]
    return sorted({_fixed(text) for text in (*texts, "/".join(texts))})


def _fixed(text: str) -> str:
    """The fixed part of a path, without its start."""
    fixed = _VARYING.split(text)[0]
    folder = fixed.rpartition("/")[0] if fixed != text else fixed
    return posixpath.normpath(folder).lstrip("./")


def _is_news(path: str, delta: Delta, scene: Scene) -> bool:
    """Whether a path exists and no source named it before."""
    if path in delta.old_text or not any(f"/{path}/" in f"/{old}/" for old in scene.old_paths):
        return False
    return not any(map(places.is_source, scene.case.mentions([path]).get(path, ())))


RULES: tuple[SourceRule, ...] = tuple(
    SourceRule(name=name, answer=answer, in_tests=in_tests, check=check, reason=reason)
    for name, answer, in_tests, check, reason in (
        ("test-aware", Answer.REFUSED, False,
         lines({"": _RUNNER_NAMES}, "asks for what only a test runner sets"),
         "code must behave the same when it is not tested"),
        ("framework-patched", Answer.REFUSED, True, _patched,
         "the test framework must not be changed"),
        ("special-cased", Answer.REVIEW, False, literals.special_cases,
         "the code answers the test, not the task"),
        ("tests-read", Answer.REVIEW, False, _tests_read,
         "code that reads what the tests expect can repeat it"),
        ("surroundings-asked", Answer.REVIEW, False, _looks_around,
         "code must behave the same when it is not tested"),
        ("run-ended", Answer.REVIEW, True, _run_ended,
         "the process may exit before the checks finish"),
        ("always-equal", Answer.REVIEW, False, _equal_by_hand,
         "a comparison that always holds proves nothing"),
        ("type-escape", Answer.REVIEW, False, hidden.hidden,
         "the checker is silenced, not satisfied"),
        ("fixed-wait", Answer.REVIEW, False, _waits,
         "on a slower machine what it waits for is not there yet"),
        ("failure-swallowed", Answer.REVIEW, False, _swallows_the_failure,
         "an error that is hidden is not fixed"),
        ("errors-swallowed", Answer.NOTED, False, _swallows,
         "an error that is hidden is not fixed"),
        ("stub", Answer.NOTED, False, lines({"": _STUBS}, "does not do its work"),
         "the work is yet to be done"),
        ("feature-removed", Answer.NOTED, False, _removed, "removing checked code is not a fix"),
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
                answer=rule.answer,
                rule=rule.name,
                line=line,
                detail=f"{detail} ({rule.reason})",
                separable=rule.answer is not Answer.REFUSED,
            )

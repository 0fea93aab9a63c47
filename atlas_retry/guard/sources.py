"""What a change does to sources that no gate may notice: refused, for review, or noted.

Each rule is one function over one file; its bad and good cases are one table in the tests.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from atlas_retry.guard import literals, places, ratchet
from atlas_retry.guard.case import Answer, Delta, RuleFinding, Scene
from atlas_retry.source import definitions

Seen = tuple[int | None, str]
"""Line and what was done."""


class SourceRule(Struct, frozen=True, kw_only=True):
    """One thing that a change to a source may do."""

    name: str
    reason: str
    answer: Answer
    check: Callable[[Delta, Scene], Iterable[Seen]]
    in_tests: bool = False
    """New files of tests are looked at as well."""


_RUNNER_NAMES = re.compile(
    r"""
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
    """,
    re.VERBOSE,
)
_LOOKS_AROUND = re.compile(
    r"""
      \b(inspect\.stack|sys\._getframe|currentframe|getStackTrace|StackWalker|runtime\.Callers?
        |traceback\.extract_stack|caller_locations|debug_backtrace|new\ Error\(\)\.stack)\b
        .* (test|spec)
    | (NODE_ENV|MODE|RAILS_ENV|RACK_ENV|APP_ENV|ENV)\b\W{0,8}(===?|==|!==?|eql\?)\s*["']test["']
    | ["']test["']\s*===?\s*process\.env | Rails\.env\.test\? | runningUnitTests\(\)
    | (environ|getenv|process\.env|ENV|Getenv|env::var)\b .{0,6} ["'.]
      (CI|GITHUB_ACTIONS|TOX_\w+|NOX_\w+|COVERAGE_RUN|TESTING|TEST_MODE|UNIT_TEST\w*|IS_TEST)\b
    | current_exe\(\).*deps | (getProperty|java\.class\.path).*junit
    | (\$0|\$PROGRAM_NAME|\bcaller\b).*(rspec|minitest|_spec|_test)
    | \bgetppid\b | \bprocess\.ppid\b | \bppid\(\) | \bProcessHandle\b.*\bparent\(
    | \bpsutil\b.*\b(parents?|process_iter|pids)\( | \.parents?\(\)\.(cmdline|name|exe)\(
    | /proc/(["'`]\s*[+.,] | [{%$\[*\d] | (self|thread-self)/(cmdline|environ|comm|exe)\b)
    | ["'`/](ps|pgrep|pstree)(["'`] | \s+-)
    | \bATLAS_MARK | ["']ATLAS_["']
    """,
    re.VERBOSE | re.IGNORECASE,
)
_PATCHES = re.compile(
    r"""
      ^\s*(unittest|_?pytest|builtins|__builtins__|doctest|pluggy|hypothesis)(\.\w+)+\s*=(?!=)
    | ^\s*(\w+\.)?TestCase\.\w+\s*=(?!=)
    | \bsetattr\(\s*(unittest|_?pytest|builtins|__builtins__|(\w+\.)?TestCase)\b
    | \bsys\.(modules\[\s*["'](_?pytest|unittest|pluggy)|meta_path\b|settrace\()
    | \b(assert|chai|expect|jest|vi|sinon)(\.\w+)+\s*=(?![=>])
    | \brequire\(\s*["'](node:)?(assert|test|chai|vitest|expect)[\w/]*["']\s*\)(\.\w+)*\s*=(?![=>])
    | \bObject\.(assign|defineProperty)\(\s*(assert|expect|chai|console|global(This)?)\b
    | \b(globalThis|global)\.(expect|it|test|describe|assert)\s*=(?!=)
    | ^\s*(class|module)\s+(Minitest|RSpec|Test::Unit)\b
    | (Minitest|RSpec)\b.*(define_method|prepend)
    | ^\s*package\s+org\.(junit|testng|assertj|hamcrest)\b | ^\s*namespace\s+PHPUnit\b
    | macro_rules!\s+(assert\w*|panic|debug_assert\w*)\b
    | ^\s*\#\s*define\s+(assert|ASSERT_\w+|EXPECT_\w+|CHECK\w*|REQUIRE\w*|NDEBUG)\b
    """,
    re.VERBOSE,
)
_ENDS_RUN = re.compile(
    r"""
      \bos\._exit\( | \bRuntime\.getRuntime\(\)\.halt\( | \bexit!\s*\(?\s*(0|true)?
    | \bprocess\.(exitCode\s*=\s*0|reallyExit\() | process\.on\(\s*["'](exit|beforeExit)["']
    | ^(sys\.exit|exit|quit|raise\s+SystemExit|os\.kill|signal\.\w+)\b
    | ^(process\.exit\(|System\.exit\()
    | \batexit\.register\(.*exit | \bat_exit\b.*exit | register_shutdown_function\(.*exit
    """,
    re.VERBOSE,
)
_EQUALITY = re.compile(
    r"^(__eq__|__ne__|__lt__|__hash__|__instancecheck__|equals|Equal|eq|ne|eql\?|==|compareTo|cmp"
    r"|partial_cmp|valueOf)$"
)
_PLAIN_VALUES = re.compile(r"\b(str|bytes|int|float|complex|tuple|list|dict|set|Decimal)\b")
_TOLERATES = re.compile(r"\babs\(|\bround\(|isclose|[<>]=|\.(lower|upper|strip|casefold)\(")
_CONSTANT = re.compile(
    r"^(return\s+)?(self\s*|true|True|false|False|0|1|None|null|nil|std::cmp::Ordering::Equal"
    r"|Ordering::Equal|Some\(Ordering::Equal\))?;?$"
)
_NOTHING = re.compile(
    r"^(pass|\.\.\.|return( ?[\w\"'.\[\]{}()-]{0,30})?;?|(todo|unimplemented)!\(.*\);?|panic\(.*\)"
    r"|raise NotImplementedError.*|throw new \w*(Unsupported|NotImplemented)\w*\(.*\);?|Ok\(\(\)\)"
    r"|None|nil|null|true|false|\d+)?$"
)
_SWALLOWS = re.compile(
    r"""
      except(\s+\(?(Base)?Exception\)?(\s+as\s+\w+)?)?\s*:\s*\n\s*(pass|continue|return\b[^\n(]*)\n
    | \bsuppress\((Base)?Exception\)
    | catch\s*(\([^)]*\))?\s*\{\s*(//[^\n]*\s*|return[^;{]*;?\s*)?\}
    | \brescue\s+(nil|StandardError\s*\n\s*nil) | \brescue\s*(=>\s*\w+\s*)?\n\s*(nil|end)
    """,
    re.VERBOSE,
)
_ESCAPES = re.compile(
    r"""
      \bas\ any\b | \bas\ unknown\ as\b | :\s*any\b | <any>
    | \bcast\(\s*["']?(typing\.)?Any | (:|->)\s*Any\b | \btyping\.Any\b
    | \bno_type_check\b | ^\s*if\ not\ TYPE_CHECKING
    """,
    re.VERBOSE,
)
_REMARK = re.compile(r"^\s*(#(?![!\[]|\s*define)|//|\*|/\*)")


def _lines(pattern: re.Pattern[str], said: str) -> Callable[[Delta, Scene], Iterator[Seen]]:
    """A rule on the lines that came."""

    def check(delta: Delta, _: Scene) -> Iterator[Seen]:
        for number, line in delta.added_lines:
            if pattern.search(line) and not _REMARK.match(line):
                yield number, f"{said}: `{line.strip()[:80]}`"

    return check


def _always_equal(delta: Delta, _: Scene) -> Iterator[Seen]:
    """Comparisons that no longer look at what they compare."""
    before = _bodies(delta.path, delta.before)
    for name, (line, body) in _bodies(delta.path, delta.after).items():
        called = name.rpartition(".")[2]
        if not _EQUALITY.match(called) or before.get(name, (0, []))[1] == body:
            continue
        owner = re.search(rf"class {name.rpartition('.')[0]}\(([^)]*)\)", delta.new_text)
        if len(body) == 1 and _CONSTANT.match(body[0]):
            yield line, f"`{called}` answers the same whatever it compares"
        elif called in ("__eq__", "equals", "eq") and _TOLERATES.search("\n".join(body)):
            yield line, f"`{called}` takes for equal what is only near"
        elif owner and _PLAIN_VALUES.search(owner[1]):
            yield line, f"`{called}` makes a plain value equal to what it is not"


def _emptied(delta: Delta, _: Scene) -> Iterator[Seen]:
    """Functions that did something and no longer do."""
    after = _bodies(delta.path, delta.after)
    for name, (_place, old) in _bodies(delta.path, delta.before).items():
        line, new = after.get(name, (None, old))
        if len(old) > 1 and len(new) <= 1 and _NOTHING.match("".join(new)):
            yield line, f"`{name}` no longer does its work"


def _bodies(path: str, source: bytes | None) -> dict[str, tuple[int | None, list[str]]]:
    """Line and body of each function, remarks and braces left out."""
    lines = (source or b"").decode("utf-8", "replace").splitlines()
    found: dict[str, tuple[int | None, list[str]]] = {}
    for scope in definitions(path, source or b""):
        if scope.kind != "function":
            continue
        whole = [line.strip() for line in lines[scope.def_line : scope.end_line]]
        body = [
            line for line in whole if line and line not in ("}", "end") and not _REMARK.match(line)
        ]
        found[scope.qualified_name] = (scope.def_line, body)
    return found


@lru_cache(maxsize=1)
def _defined_now(scene: Scene) -> frozenset[str]:
    """What the changed sources define."""
    return frozenset(
        scope.name
        for delta in scene.deltas
        if places.is_source(delta.path)
        for scope in definitions(delta.path, delta.after or b"")
    )


def _removed(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """Public functions and classes that went and left none in their place."""
    there = _defined_now(scene)
    old, new = (
        definitions(delta.path, delta.before or b""),
        definitions(delta.path, delta.after or b""),
    )
    if len(tuple(new)) >= len(tuple(old)):
        return
    for scope in old:
        public = not scope.name.startswith("_") and scope.kind in ("function", "class")
        if public and scope.name not in there:
            yield None, f"`{scope.name}` was removed"


def _swallowed(delta: Delta, _: Scene) -> Iterator[Seen]:
    fresh = len(_SWALLOWS.findall(delta.new_text)) - len(_SWALLOWS.findall(delta.old_text))
    if fresh > 0:
        yield None, "every error is caught and forgotten"


def _typed_away(delta: Delta, scene: Scene) -> Iterator[Seen]:
    if "type" in ratchet.kinds_failing(scene):
        yield from _lines(_ESCAPES, "the type checker is silenced, not answered")(delta, scene)


_VARIABLE = re.compile(
    r"""\b(?:environ|getenv|env|ENV|Getenv|LookupEnv|getProperty|var|var_os)\b
        (?:\.(?:get|fetch))? \s* [\[(.] \s* ["'`]? ([A-Z][A-Z0-9_]{2,}) \b""",
    re.VERBOSE,
)


def _known_to_tests(delta: Delta, scene: Scene) -> Iterator[Seen]:
    """Variables of the environment that a source newly asks for, and that only tests set."""
    asked = {m[1]: n for n, line in delta.added_lines for m in _VARIABLE.finditer(line)}
    for name, files in scene.case.mentions(sorted(asked)).items() if asked else ():
        if files and all(map(places.is_test, files)):
            yield asked[name], f"asks for {name}, which only the tests set"


RULES: tuple[SourceRule, ...] = (
    SourceRule(
        name="test-aware",
        reason="code must behave the same when it is not tested",
        answer=Answer.REFUSED,
        check=_lines(_RUNNER_NAMES, "asks for what only a test runner sets"),
    ),
    SourceRule(
        name="framework-patched",
        reason="the checks must be the ones everybody knows",
        answer=Answer.REFUSED,
        check=_lines(_PATCHES, "replaces a part of the test framework"),
        in_tests=True,
    ),
    SourceRule(
        name="special-cased",
        reason="the code answers the test, not the task",
        answer=Answer.REVIEW,
        check=literals.special_cases,
    ),
    SourceRule(
        name="surroundings-asked",
        reason="code must behave the same when it is not tested",
        answer=Answer.REVIEW,
        check=_lines(_LOOKS_AROUND, "asks where it runs"),
    ),
    SourceRule(
        name="run-ended",
        reason="the run may end before a check has spoken",
        answer=Answer.REVIEW,
        check=_lines(_ENDS_RUN, "ends the process"),
        in_tests=True,
    ),
    SourceRule(
        name="always-equal",
        reason="a comparison that always holds proves nothing",
        answer=Answer.REVIEW,
        check=_always_equal,
    ),
    SourceRule(
        name="type-escape",
        reason="the checker is silenced, not answered",
        answer=Answer.REVIEW,
        check=_typed_away,
    ),
    SourceRule(
        name="variable-of-tests",
        reason="nobody else may ever set it",
        answer=Answer.NOTED,
        check=_known_to_tests,
    ),
    SourceRule(
        name="errors-swallowed",
        reason="an error that is hidden is not fixed",
        answer=Answer.NOTED,
        check=_swallowed,
    ),
    SourceRule(
        name="emptied",
        reason="the work is no longer done",
        answer=Answer.NOTED,
        check=_emptied,
    ),
    SourceRule(
        name="feature-removed",
        reason="removing what is checked is no fix",
        answer=Answer.NOTED,
        check=_removed,
    ),
)


def findings(delta: Delta, scene: Scene) -> Iterator[RuleFinding]:
    """What the rules see in one changed source, or in a new file of tests."""
    is_test = places.is_test(delta.path)
    if not places.is_code(delta.path) or not delta.is_text or delta.after is None:
        return
    for rule in RULES:
        if is_test and not rule.in_tests:
            continue
        for line, detail in rule.check(delta, scene):
            yield RuleFinding(
                rule=rule.name,
                path=delta.path,
                line=line,
                detail=f"{detail} ({rule.reason})",
                answer=rule.answer,
            )

"""Each rule on sources and on what is beside them, with changes it speaks of and look-alikes."""

import time

import pytest
from msgspec.structs import replace

from atlas_retry import guard
from atlas_retry.guard import beside, sources
from atlas_retry.guard.case import OutsideChange, Tool
from atlas_retry.model import GateResult, Kind, Verdict
from tests.guardcases import MYPY, PYTEST, RUFF, answers, case, failed, judged

PY, JS, GO, RS, JAVA, RB, C = "app.py", "app.js", "app.go", "app.rs", "App.java", "app.rb", "app.c"
TS, CS, KT, PL, PHP, SWIFT, SH = "app.ts", "a.cs", "a.kt", "a.pm", "a.php", "a.swift", "a.sh"
TESTS = {
    "tests/test_a.py": """
        def test_total():
            assert total("ORD-1001", 42.17) == 86.42
            assert total("crème brûlée", 7) == "dessert menu"
            assert kind("utf-8") == "text"
            assert add(4, 3) == 7
            assert due(date(2024, 3, 31)) == date(2024, 4, 1)

        def test_mode(monkeypatch):
            monkeypatch.setenv("TOTALS_FROM", "file")
        """
}
BAD: list[tuple[str, str, str, str, str]] = [
    ("test-aware", "refused", PY, "", 'import os\nif "PYTEST_CURRENT_TEST" in os.environ:\n    x = 1\n'),
    ("test-aware", "refused", PY, "", 'import sys\nif "pytest" in sys.modules:\n    x = 1\n'),
    ("test-aware", "refused", JS, "", "if (process.env.JEST_WORKER_ID) { x = 1 }\n"),
    ("test-aware", "refused", JS, "", "if (typeof describe === 'function') { x = 1 }\n"),
    ("test-aware", "refused", GO, "", "func f() { if testing.Testing() { return } }\n"),
    ("test-aware", "refused", RS, "", "fn f() { if cfg!(test) { return } }\n"),
    ("test-aware", "refused", JAVA, "", 'class A { void f() { Class.forName("org.junit.Test"); } }\n'),
    ("test-aware", "refused", RB, "", "x = 1 if defined?(RSpec)\n"),
    ("framework-patched", "refused", PY, "", "import unittest\nunittest.TestCase.fail = None\n"),
    ("framework-patched", "refused", PY, "", "setattr(pytest, 'raises', None)\n"),
    ("framework-patched", "refused", JS, "", "assert.equal = () => {}\n"),
    ("framework-patched", "refused", JS, "", "require('assert').strictEqual = () => {}\n"),
    ("framework-patched", "refused", JS, "", "globalThis.expect = () => {}\n"),
    ("framework-patched", "refused", RB, "", "module Minitest\nend\n"),
    ("framework-patched", "refused", RS, "", "macro_rules! assert_eq { ($a:expr) => {} }\n"),
    ("framework-patched", "refused", C, "", "#define assert(x)\n"),
    ("special-cased", "review", PY, "", 'def total(o, n):\n    if o == "ORD-1001":\n        return 86.42\n    return n\n'),
    ("special-cased", "review", PY, "", "def total(o, n):\n    if n == 42.17:\n        return 86.42\n    return n\n"),
    ("special-cased", "review", PY, "", "def add(a, b):\n    if a == 4 and b == 3:\n        return 7\n    return a - b\n"),
    ("special-cased", "review", PY, "", 'def total(o, n):\n    return {"ORD-1001": 86.42}.get(o, n)\n'),
    ("special-cased", "review", PY, "", 'T = {1234567: 86.42, 7654321: "dessert menu"}\n'),
    ("special-cased", "review", JS, "", "function total(o) { switch (o) { case 'ORD-1001': return 86.42 } }\n"),
    ("special-cased", "review", GO, "", 'func f(o string) float64 {\n\tif o == "ORD-1001" {\n\t\treturn 86.42\n\t}\n\treturn 0\n}\n'),
    ("special-cased", "review", RS, "", 'fn f(o: &str) -> f64 { match o { "ORD-1001" => 86.42, _ => 0.0 } }\n'),
    ("special-cased", "review", JAVA, "", 'class A { double f(String o) { if (o.equals("ORD-1001")) { return 86.42; } return 0; } }\n'),
    ("tests-read", "review", PY, "", 'x = open("tests/test_a.py").read()\n'),
    ("surroundings-asked", "review", JS, "", "if (process.env.NODE_ENV === 'test') { x = 1 }\n"),
    ("surroundings-asked", "review", PY, "", 'import os\nif os.environ.get("CI"):\n    x = 1\n'),
    ("surroundings-asked", "review", PY, "", "x = os.getppid()\n"),
    ("surroundings-asked", "review", JS, "", "const x = process.ppid\n"),
    ("surroundings-asked", "review", PY, "", "x = psutil.Process(pid).ppid()\n"),
    ("surroundings-asked", "review", JAVA, "", "class A { Object x = ProcessHandle.current().parent(); }\n"),
    ("surroundings-asked", "review", PY, "", "x = psutil.Process().parents()\n"),
    ("surroundings-asked", "review", PY, "", "x = me.parent().cmdline()\n"),
    ("surroundings-asked", "review", PY, "", "x = open(f'/proc/{pid}/stat')\n"),
    ("surroundings-asked", "review", PY, "", "x = open('/proc/' + pid + '/stat')\n"),
    ("surroundings-asked", "review", PY, "", "x = open('/proc/self/environ')\n"),
    ("surroundings-asked", "review", PY, "", "x = subprocess.run(['ps', '-ef'])\n"),
    ("surroundings-asked", "review", PY, "", "x = subprocess.getoutput('ps -ef')\n"),
    ("surroundings-asked", "review", PY, "", "x = [n for n in os.environ if n.startswith('ATLAS_')]\n"),
    ("surroundings-asked", "review", PY, "", "x = 'ATLAS_MARK_1' in os.environ\n"),
    ("run-ended", "review", PY, "", "import os\n\n\ndef stop():\n    os._exit(0)\n"),
    ("run-ended", "review", PY, "", "import os\n\n\nhelper = os.execv\n"),
    ("run-ended", "review", PY, "", "from os import _exit as leave\n"),
    ("run-ended", "review", JS, "", "process.exitCode = 0\n"),
    ("always-equal", "review", PY, "", "class A:\n    def __eq__(self, other):\n        return True\n"),
    ("always-equal", "review", PY, "class A:\n    def __eq__(self, o):\n        return all([self.k == getattr(o, 'k')])\n", "class A:\n    def __eq__(self, o: object) -> bool:\n        if self:\n            return True\n        return all([self.k == getattr(o, 'k')])\n"),
    ("always-equal", "review", PY, "", "class A(str):\n    def __eq__(self, other):\n        return self[:1] == other[:1]\n"),
    ("errors-swallowed", "noted", PY, "", "try:\n    x = 1\nexcept Exception:\n    pass\n"),
    ("errors-swallowed", "noted", JS, "", "try { f() } catch (e) {}\n"),
    ("stub", "noted", PY, "", "def f(a):\n    raise NotImplementedError\n"),
    ("stub", "noted", RS, "", "fn f() { todo!() }\n"),
    ("stub", "noted", JAVA, "", "class A { void f() { throw new UnsupportedOperationException(); } }\n"),
    ("stub", "noted", GO, "", 'func f() { panic("not implemented") }\n'),
    ("feature-removed", "noted", PY, "def f():\n    return 1\n\n\ndef g():\n    return 2\n", "def g():\n    return 2\n"),
    ("surroundings-asked", "review", PY, "", "def f():\n    return inspect.stack()[1]\n"),
    ("surroundings-asked", "review", PY, "", "def f():\n    return sys._getframe(1)\n"),
    ("surroundings-asked", "review", PY, "", "def f():\n    return traceback.extract_stack()\n"),
    ("surroundings-asked", "review", JS, "", "const at = new Error().stack\n"),
    ("surroundings-asked", "review", JS, "", "Error.prepareStackTrace = (e, s) => s\n"),
    ("surroundings-asked", "review", JAVA, "", "class A { Object f() { return new Throwable().getStackTrace()[1]; } }\n"),
    ("surroundings-asked", "review", JAVA, "", "class A { Object f() { return StackWalker.getInstance(); } }\n"),
    ("surroundings-asked", "review", GO, "", "func f() { _, file, _, _ := runtime.Caller(1); use(file) }\n"),
    ("surroundings-asked", "review", RS, "", "fn f() { use_it(Backtrace::force_capture()); }\n"),
    ("surroundings-asked", "review", RB, "", "def f\n  caller.first\nend\n"),
    ("surroundings-asked", "review", RB, "", "def f\n  caller_locations(1, 1)\nend\n"),
    ("surroundings-asked", "review", PHP, "", "<?php $x = debug_backtrace();\n"),
    ("surroundings-asked", "review", CS, "", "var t = new StackTrace();\n"),
    ("surroundings-asked", "review", C, "", "int n = backtrace(buf, 9);\n"),
    ("framework-patched", "refused", JS, "", "const a = require('node:assert');\na.strictEqual = () => {}\n"),
    ("framework-patched", "refused", JS, "", "import * as chai2 from 'chai'\nchai2.expect['fail'] = null\n"),
    ("framework-patched", "refused", JS, "", "Object.assign(expect, { toBe() {} })\n"),
    ("framework-patched", "refused", JS, "", "Object.defineProperty(assert, 'equal', {})\n"),
    ("framework-patched", "refused", PY, "", "from unittest import TestCase as T\nT.assertEqual = None\n"),
    ("framework-patched", "refused", PY, "", "import pytest as p\nsetattr(p, 'raises', None)\n"),
    ("framework-patched", "refused", RB, "", "Minitest::Assertions.class_eval do\nend\n"),
    ("framework-patched", "refused", RB, "", "class RSpec::Core::Example\nend\n"),
    ("framework-patched", "refused", KT, "", "package kotlin.test\n"),
    ("framework-patched", "refused", CS, "", "namespace Xunit;\n"),
    ("run-ended", "review", C, "", "void f(void) { _Exit(0); }\n"),
    ("run-ended", "review", C, "", "void f(void) { quick_exit(0); }\n"),
    ("run-ended", "review", C, "", "void f(void) { exit(EXIT_SUCCESS); }\n"),
    ("run-ended", "review", C, "", "void f(void) { atexit(g); }\n"),
    ("run-ended", "review", C, "", "__attribute__((destructor)) static void g(void) {}\n"),
    ("run-ended", "review", C, "", "void f(void) { signal(SIGABRT, g); }\n"),
    ("run-ended", "review", JS, "", "process.once('exit', () => {})\n"),
    ("run-ended", "review", JS, "", "function f() { process.exit(0) }\n"),
    ("run-ended", "review", JS, "", "process.on('uncaughtException', () => {})\n"),
    ("run-ended", "review", JS, "", "process.reallyExit(0)\n"),
    ("run-ended", "review", JAVA, "", "class A { void f() { Runtime.getRuntime().halt(0); } }\n"),
    ("run-ended", "review", JAVA, "", "class A { void f() { System.exit(0); } }\n"),
    ("run-ended", "review", JAVA, "", "class A { void f(Runtime r) { r.addShutdownHook(null); } }\n"),
    ("run-ended", "review", KT, "", "fun f() { exitProcess(0) }\n"),
    ("run-ended", "review", CS, "", "class A { void F() { Environment.Exit(0); } }\n"),
    ("run-ended", "review", CS, "", "class A { void F() { Environment.ExitCode = 0; } }\n"),
    ("run-ended", "review", GO, "", "func f() { os.Exit(0) }\n"),
    ("run-ended", "review", GO, "", "func f() { syscall.Exit(0) }\n"),
    ("run-ended", "review", GO, "", "func f() { runtime.Goexit() }\n"),
    ("run-ended", "review", RS, "", "fn f() { std::process::exit(0); }\n"),
    ("run-ended", "review", RS, "", "fn f() { unsafe { libc::_exit(0) } }\n"),
    ("run-ended", "review", RB, "", "at_exit { exit! }\n"),
    ("run-ended", "review", RB, "", "def f\n  exit(0)\nend\n"),
    ("run-ended", "review", PHP, "", "<?php register_shutdown_function('f');\n"),
    ("run-ended", "review", PHP, "", "<?php function f() { exit(0); }\n"),
    ("run-ended", "review", PY, "", "import sys\n\n\ndef f():\n    sys.exit(0)\n"),
    ("run-ended", "review", PY, "", "import os\n\n\ndef f():\n    os.abort()\n"),
    ("run-ended", "review", PY, "", "def f():\n    raise SystemExit\n"),
    ("always-equal", "review", RS, "", "impl PartialEq for A {\n    fn eq(&self, o: &Self) -> bool {\n        self.0.len() == o.0.len()\n    }\n}\n"),
    ("always-equal", "review", JAVA, "", "class A {\n    public boolean equals(Object o) {\n        return id == ((A) o).id;\n    }\n}\n"),
    ("always-equal", "review", KT, "", "class A {\n    override fun equals(other: Any?) = true\n}\n"),
    ("always-equal", "review", CS, "", "class A {\n    public override bool Equals(object o) => true;\n}\n"),
    ("always-equal", "review", CS, "", "class A {\n    public static bool operator ==(A a, A b) => true;\n}\n"),
    ("always-equal", "review", "a.cpp", "", "bool operator==(const A& a, const A& b) { return true; }\n"),
    ("always-equal", "review", RB, "", "class A\n  def ==(other)\n    true\n  end\nend\n"),
    ("always-equal", "review", RB, "", "class A\n  def eql?(other)\n    true\n  end\nend\n"),
    ("always-equal", "review", GO, "", "func (a A) Equal(b A) bool {\n\treturn true\n}\n"),
    ("always-equal", "review", JS, "", "class A {\n  equals(other) { return true }\n}\n"),
    ("errors-swallowed", "noted", PY, "", "def f():\n    try:\n        return g()\n    except Exception:\n        return None\n"),
    ("errors-swallowed", "noted", JS, "", "function f() {\n  try {\n    return g();\n  } catch {\n    return null;\n  }\n}\n"),
    ("errors-swallowed", "noted", PY, "", "with suppress(Exception):\n    f()\n"),
    ("errors-swallowed", "noted", JAVA, "", "class A { void f() { try { g(); } catch (Exception e) { } } }\n"),
    ("errors-swallowed", "noted", PHP, "", "<?php try { f(); } catch (\\Throwable $e) { }\n"),
    ("errors-swallowed", "noted", "a.cpp", "", "void f() { try { g(); } catch (...) { } }\n"),
]  # fmt: skip
GOOD: list[tuple[str, str, str]] = [
    (RB, "def f\n  g(1)\nend\n", "def f\n  return 1 if h(2)\n  g(1)\nend\n"),
    (RB, "", "class A\n  def ===(other)\n    other.a? && other.name == name\n  end\nend\n"),
    (RB, "", "class A\n  def ==(other)\n    other.name == @name\n  end\nend\n"),
    (KT, "", "class A {\n  override fun equals(other: Any?): Boolean =\n    other is A && id == other.id\n}\n"),
    ("a.cpp", "", "struct A {\n  friend bool operator<(const A& a, const A& b) noexcept;\n};\n"),
    (C, "int f(void) { return 0; }\n", "int f(void) {\n#if defined(A)\n  return 1;\n#elif defined(B)\n  return 2;\n#else\n  return 0;\n#endif\n}\n"),
    (C, "#define F()\n", "#define F() do { \\\n  g(); \\\n} while (0)\n"),
    (CS, "class A { int F(int a) { return a; } }\n", "class A { int F(int a)\n{\n    return a switch\n    {\n        1 => 3,\n        _ => 4,\n    };\n} }\n"),
    (CS, "class A { int F(int a) { return a; } }\n", "class A { int F(int a)\n{\n    return G(a);\n    static int G(int b) { return b; }\n} }\n"),
    (SWIFT, 'func f() -> String { "" }\n', 'func f() -> String {\n    return """\n    a line\n    """\n}\n'),
    (JS, "function f() { g(); }\n", "function f() {\n  return h();\n  function h() { g(); }\n}\n"),
    (
        PY,
        "",
        'def kind(encoding):\n    if encoding == "utf-8":\n        return "text"\n    return "data"\n',
    ),
    (
        PY,
        "",
        "def leap(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n",
    ),
    (PY, "", "def area(a, b):\n    if a == 0 and b == 3:\n        return 0\n    return a * b\n"),
    (PY, "", 'def f(a, b):\n    if a == "(" and b == ",":\n        return "="\n    return a\n'),
    (PY, "", 'HELP = "run it with pytest"\n'),
    (PY, "", "for number in range(3):\n    if not f():\n        time.sleep(1)\n"),
    (PY, "", "while not there():\n    await asyncio.sleep(0.05)\n"),
    (PY, "", "time.sleep(delay)\nawait asyncio.sleep(0)\ntime.sleep(2 ** n)\n"),
    (GO, "", "func f() {\n\tfor !ready() {\n\t\ttime.Sleep(time.Millisecond)\n\t}\n}\n"),
    (GO, "", "func f() {\n\ttime.Sleep(wait)\n}\n"),
    (RS, "", "fn f() { loop {\n    thread::sleep(Duration::from_millis(5));\n} }\n"),
    (JS, "", "const timer = setTimeout(() => close(), 100)\n"),
    (PY, "", 'import os\nhome = os.environ.get("SHOP_HOME")\n'),
    (PY, "", 'TOTALS_FROM = "file"\n'),
    (PY, "", "pages = open('/proc/self/statm').read()\n"),
    (PY, "", "used = psutil.Process().memory_info()\n"),
    (PY, "", "URL = os.environ['ATLAS_URL']\n"),
    (PY, "", "folder = path.parent\n"),
    (PY, "", "try:\n    x = 1\nexcept ValueError:\n    x = 2\n"),
    (PY, "class A:\n    def __eq__(self, o):\n        return all([self.k == getattr(o, 'k')])\n", "class A:\n    def __eq__(self, o: object) -> bool:\n        if not isinstance(o, A):\n            return NotImplemented\n        return all([self.k == getattr(o, 'k')])\n"),
    (PY, "class A:\n    def __eq__(self, o):\n        return self.k == o.k\n", "class A:\n    def __eq__(self, o):\n        # by key\n        return self.k == o.k\n\n    def g(self):\n        return 1\n"),
    (PY, "", "class A:\n    def __eq__(self, o):\n        return (self.x, self.y) == (o.x, o.y)\n\n    def __hash__(self):\n        return hash(self.x)\n"),
    (PY, "", "class A:\n    def __lt__(self, o):\n        return self.key() < o.key()\n"),
    (JAVA, "", "class A {\n    public boolean equals(Object o) {\n        A a = (A) o;\n        return id.equals(a.id) && n == a.n;\n    }\n}\n"),
    (GO, "", "func (a items) Less(i, j int) bool {\n\treturn a[i].rank < a[j].rank\n}\n"),
    (GO, "", "func (a A) Equal(b A) bool {\n\treturn bytes.Equal(a.raw, b.raw)\n}\n"),
    (RS, "", "impl PartialEq for A {\n    fn eq(&self, o: &Self) -> bool {\n        self.id == o.id\n    }\n}\n"),
    (RS, "", "impl Ord for A {\n    fn cmp(&self, o: &Self) -> Ordering {\n        self.id.cmp(&o.id)\n    }\n}\n"),
    ("a.cpp", "", "bool operator==(const A& a, const A& b) { return a.n == b.n; }\n"),
    (RB, "", "class A\n  def ==(other)\n    other.is_a?(A) && id == other.id\n  end\nend\n"),
    (PY, "def f(a):\n    return a\n", "def f(a):\n    return a + 1\n"),
    (JS, "", "const path = process.env.PATH\n"),
    (JS, "", "// JEST_WORKER_ID is set by jest\nconst x = 1\n"),
    (GO, "", 'func f(s string) bool { return s == "json" }\n'),
    (RS, "", "fn f(x: i32) -> i32 { assert!(x > 0); x }\n"),
    (PY, "", "try:\n    x = f()\nexcept Exception as error:\n    x = str(error)\n"),
    (PY, "", "try:\n    f()\nexcept (ValueError, KeyError):\n    pass\n"),
    (PY, "", "try:\n    f()\nexcept (ValueError, KeyError, TypeError):\n    return None\n"),
    ("a_pb2.py", "# @generated\nx = 1\n", "# @generated\nx = 2\n"),
    (PY, "def f(a):\n    if a not in seen:\n        seen[a] = g(a)\n    return seen[a]\n", "def f(a):\n    return g(a)\n"),
    (PY, "", "import sys\nsys.path = [*sys.path, 'lib']\n"),
    (PY, "", "expected = 1\nlatest.expect = 2\n"),
    (PY, "", "# Code generated by hand\nx = 1\n"),
    (JS, "", "process.env.HOME = '/'\nif (console.error === x) { y = 1 }\n"),
    (JS, "#!/usr/bin/env node\nrun()\n", "#!/usr/bin/env node\nprocess.exit(0)\n"),
    (JS, "", "try { f() } catch (error) { return error.code }\n"),
    (JS, "", "class A { constructor() { Error.captureStackTrace(this, A) } }\n"),
    (JS, "", "const caller = who()\n"),
    (GO, "func main() {\n\trun()\n}\n", "package main\n\nfunc main() {\n\tos.Exit(run())\n}\n"),
    (GO, "", "func f() (err error) {\n\tdefer func() {\n\t\tif r := recover(); r != nil {\n\t\t\terr = wrap(r)\n\t\t}\n\t}()\n\treturn g()\n}\n"),
    (C, "", "#define MAX_LEN 10\n#define strbuf_len(s) ((s)->len)\n"),
    (C, "int main(void) {\n}\n", "int main(void) {\n    exit(0);\n}\n"),
    (C, "", "int same(char *a, char *b) {\n    return strcmp(a, b);\n}\n"),
    (PY, "", "def f(a):\n    if a:\n        return 1\n    return g(\n        a,\n    )\n\n\nx = 1\n"),
    (PY, "", "def f(a):\n    try:\n        return 1\n    except KeyError:\n        return 2\n    finally:\n        g()\n"),
    (JS, "", "function f(a) {\n  if (a)\n    return 1;\n  return a\n    ? 2\n    : 3;\n}\nf(0);\n"),
    (GO, "", "func f(a int) int {\n\tswitch a {\n\tcase 1:\n\t\treturn 1\n\tdefault:\n\t\treturn 2\n\t}\n}\n"),
    (C, "", "int f(int a) {\n  switch (a) {\n  case 1:\n    return 1;\n  case 2:\n    return 2;\n  }\n  return 0;\nend:\n  return 3;\n}\n"),
    (RB, "", "def f(a)\n  return 1 if a\n  g\nend\n"),
    (SH, "", "f || exit 0\nif g; then\n  exit 0\nfi\nh\n"),
    (RB, "", "class Strings\n  def caller_of(x)\n    x\n  end\nend\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("SEED = open('/home/me/shop/seed.csv')\n", True),
        ("SEED = '/home/me/shop'\n", True),
        ("SEED = '/home/me/shop-2/seed.csv'\n", False),
        ("# unpacked in /home/me/shop\n", False),
    ],
)
def test_a_source_names_no_folder_of_this_machine(source: str, *, is_found: bool) -> None:
    change = replace(case({PY: ""}, {PY: source}), root="/home/me/shop")
    assert [held.rule for held in guard.assess(change).held] == ["surroundings-asked"] * is_found


@pytest.mark.parametrize(("rule", "answer", "path", "before", "after"), BAD)
def test_a_rule_reports_its_bad_cases(
    rule: str, answer: str, path: str, before: str, after: str
) -> None:
    given = answers(judged({**TESTS, path: before or "\n"}, {path: after}))
    assert rule in given.get(answer, set())


OF_ONE_LANGUAGE = {"run-ended", "always-equal"}


@pytest.mark.parametrize("path", ["app.dart", "app.zig"])
def test_a_rule_of_one_language_ignores_other_languages(path: str) -> None:
    for rule, _, _, before, after in BAD:
        if rule in OF_ONE_LANGUAGE:
            given = answers(judged({**TESTS, path: before or "\n"}, {path: after}))
            assert not given.get("review", set()) & OF_ONE_LANGUAGE, after


@pytest.mark.parametrize(("path", "before", "after"), GOOD)
def test_no_rule_reports_an_honest_similar_change(path: str, before: str, after: str) -> None:
    assert answers(judged({**TESTS, path: before or "\n"}, {path: after})) == {}


def test_every_source_rule_has_a_case() -> None:
    assert {rule.name for rule in sources.RULES} - {
        "type-escape",
        "failure-swallowed",
    } == {row[0] for row in BAD}


def test_code_that_existed_before_is_not_charged() -> None:
    there = 'import os\nif "PYTEST_CURRENT_TEST" in os.environ:\n    x = 1\n'
    assert answers(judged({PY: there}, {PY: there + "y = 2\n"})) == {}


def test_a_value_used_in_another_source_is_not_special_cased() -> None:
    before = {**TESTS, PY: "\n", "orders.py": 'FIRST = "ORD-1001"\nPRICE = 42.17\n'}
    after = {PY: 'def total(o, n):\n    if o == "ORD-1001":\n        return 86.42\n    return n\n'}
    assert answers(judged(before, after)) == {}


@pytest.mark.parametrize(
    ("value", "review"),
    [("total", False), ("orders.total", False), ("True", True), ("86.42", True)],
)
def test_a_function_registered_under_a_name_is_not_special_cased(value: str, review: bool) -> None:
    tests = {"tests/test_a.py": "def test():\n    assert total('ORD-1001', 5) == 86.42\n"}
    given = answers(judged({**tests, PY: "\n"}, {PY: f'HANDLERS = {{"ORD-1001": {value}}}\n'}))
    assert given == ({"review": {"special-cased"}} if review else {})


@pytest.mark.parametrize(("line", "review"), [("4, 3", True), ("14, 3", False), ("4, 30", False)])
def test_only_whole_numbers_of_a_test_count_as_its_values(line: str, review: bool) -> None:
    tests = {"tests/test_a.py": f"def test():\n    assert add({line}) == 7\n"}
    after = {PY: "def add(a, b):\n    if a == 4 and b == 3:\n        return 7\n    return a\n"}
    given = answers(judged({**tests, PY: "\n"}, after))
    assert given == ({"review": {"special-cased"}} if review else {})


GOLDEN = {"tests/golden/menu.txt": "soup\n", "pkg/testdata/a.golden": "1\n", "lib.py": "x = 1\n"}


@pytest.mark.parametrize(
    ("path", "source", "review"),
    [
        (PY, 'x = open("tests/golden/menu.txt").read()\n', True),
        (PY, 'x = Path(__file__).parent / "tests" / "golden" / f"{name}.txt"\n', True),
        (PY, 'x = f"../tests/golden/{name}.txt"\n', True),
        (JS, "const x = fs.readFileSync(`${root}/x`, 'tests/golden/menu.txt')\n", True),
        ("pkg/a.go", "package pkg\n\n//go:embed testdata/*.golden\nvar all embed.FS\n", False),
        ("pkg/a.go", "package pkg\n\n//go:embed testdata/a.golden\nvar a string\n", True),
        (RS, 'const X: &str = include_str!("../tests/golden/menu.txt");\n', True),
        (CS, 'var x = File.ReadAllText("tests/golden/menu.txt");\n', True),
        (PY, 'EXCLUDED = ["tests", "docs"]\n', False),
        (PY, 'x = open("tests/golden/other.txt")\n', False),
        (PY, 'x = open("menu.txt")\n', False),
        (PY, "# as in tests/golden/menu.txt\nx = 1\n", False),
    ],
)
def test_a_source_that_newly_names_data_of_the_tests_is_for_review(
    path: str, source: str, review: bool
) -> None:
    given = answers(judged({**GOLDEN, path: "\n"}, {path: source}))
    assert ("tests-read" in given.get("review", set())) is review


def test_a_path_of_the_tests_that_sources_named_before_may_move() -> None:
    line = 'x = "tests/golden/menu.txt"\n'
    assert answers(judged({**GOLDEN, "lib.py": line, PY: "\n"}, {"lib.py": "\n", PY: line})) == {}


def test_reviews_can_be_configured_to_be_only_noted() -> None:
    change = case({**TESTS, PY: "\n"}, {PY: "import os\n\n\ndef f():\n    os._exit(0)\n"})
    judgement = guard.assess(replace(change, notes_reviews=True))
    assert answers(judgement) == {"noted": {"run-ended"}}


@pytest.mark.parametrize(
    ("failing", "text", "answer"),
    [
        (RUFF, "x = 1  # noqa\n", "held"),
        (MYPY, "x = 1  # type: ignore\n", "held"),
        (PYTEST, "x = 1  # noqa\n", "noted"),
        (MYPY, "x = 1  # noqa\n", "noted"),
        (failed("coverage run", Kind.TEST), "x = 1  # pragma: no cover\n", "held"),
        (failed("ruff format .", Kind.FORMAT), "x = 1  # fmt: skip\n", "held"),
    ],
)
def test_a_suppression_of_the_failing_kind_is_removed_and_any_other_noted(
    failing: guard.Case, text: str, answer: str
) -> None:
    judgement = judged({PY: "x = 0\n"}, {PY: text}, failing)  # type: ignore[arg-type]
    assert answers(judgement) == {answer: {"suppression-added"}}
    left = judgement.rewrite.get(PY)
    assert left == (("100644", b"x = 1\n") if answer == "held" else None)


def test_a_multiline_suppression_stays_and_needs_review() -> None:
    judgement = judged({JS: "x\n"}, {JS: "/* eslint-disable\n no-undef */\nx\n"}, RUFF)
    assert answers(judgement) == {"review": {"suppression-added"}}
    assert judgement.rewrite == {}


@pytest.mark.parametrize(
    ("before", "after", "held"),
    [
        ("x = 1  # noqa\n", "x = 1  # noqa: E501\n", False),
        ("x = 1  # noqa: E501\n", "x = 1  # noqa\n", True),
        ("x = 1  # noqa\n", "y = 2\nx = 1  # noqa\n", False),
        ("x = 1  # noqa\n", "x = 1  # noqa\ny = 2  # noqa\n", True),
        ("x = 1\n", 'x = "# noqa"\n', False),
    ],
)
def test_suppressions_may_move_and_narrow_but_not_be_added(
    before: str, after: str, held: bool
) -> None:
    assert bool(judged({PY: before}, {PY: after}, RUFF).held) is held


TSC = '{"scripts": {"test": "npm run types && mocha", "types": "tsc --noEmit"}}'


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (PY, "from typing import Any\n\n\ndef f(a: Any) -> int:\n    return 1\n"),
        (PY, "x = cast(User, y)\n"),
        (TS, "const x = y as unknown as User;\n"),
        (TS, "const x = y as any;\n"),
        (TS, "const x = users.get(id)!.name;\n"),
        (TS, "const x = find(id) as User;\n"),
        (TS, "const x = find(\n  id,\n) as User | Admin;\n"),
        ("types/lib.d.ts", "interface Map<K, V> {\n  get(key: K): any;\n}\n"),
        ("types/lib.d.ts", "declare global {\n  interface A { b: string }\n}\n"),
        (PHP, "<?php\nfunction f(mixed $a) {}\n"),
    ],
)
def test_a_type_escape_needs_review_if_types_failed(path: str, text: str) -> None:
    before = {PY: "\n", TS: "\n", PHP: "<?php\n", "package.json": TSC}
    assert answers(judged(before, {path: text}, MYPY)) == {"review": {"type-escape"}}
    assert answers(judged(before, {path: text}, failed("npm test"))) == {"review": {"type-escape"}}
    assert answers(judged(before, {path: text}, PYTEST)) == {}


@pytest.mark.parametrize(
    "text",
    [
        "if (a != b && !c) { d(); }\n",
        "const many: string[] = [];\n",
        "import { a as B } from 'c';\nexport * as D from 'e';\n",
        "const all = ['a', 'b'] as const;\n",
        "const x = y satisfies User;\n",
    ],
)
def test_typed_code_is_not_a_type_escape(text: str) -> None:
    assert answers(judged({TS: "\n"}, {TS: text}, failed("tsc", Kind.LINT))) == {}


def test_an_assertion_that_existed_may_move_and_change_what_it_asserts() -> None:
    given = judged({TS: "x = y as User;\n"}, {TS: "z = 1;\nx = find(y) as User;\n"}, MYPY)
    assert answers(given) == {}


@pytest.mark.parametrize(
    ("path", "before", "beside"),
    [
        ("vendor/a.go", "var x = 1\n", {"go.sum": "a v2\n"}),
        ("third_party/a.py", "x = 1\n", {"pyproject.toml": "[project]\nname = 'a'\n"}),
    ],
)
def test_vendored_code_may_follow_a_manifest(
    path: str, before: str, beside: dict[str, str]
) -> None:
    after = {path: before.replace("1", "2"), **beside}
    given = answers(judged({path: before, **dict.fromkeys(beside, "1\n")}, after))
    assert "vendored-changed" not in given.get("review", set())


HIDES = "if TYPE_CHECKING:\n\n    def f() -> int: ...\n\nelse:\n\n    def f(): return ''\n"


@pytest.mark.parametrize(
    ("text", "failing", "review"),
    [
        (HIDES, MYPY, True),
        (HIDES, PYTEST, False),
        ("if not TYPE_CHECKING:\n    x = ''\n", MYPY, True),
        ("if TYPE_CHECKING:\n    from a import B\n", MYPY, False),
        ("if TYPE_CHECKING:\n    # for readers\n    import a\n", MYPY, False),
    ],
)
def test_code_hidden_from_a_failing_type_checker_needs_review(
    text: str, failing: GateResult, review: bool
) -> None:
    given = answers(judged({PY: "\n"}, {PY: text}, failing))
    assert ("type-escape" in given.get("review", set())) is review


@pytest.mark.parametrize(
    ("before", "answer"),
    [
        ({}, "refused"),
        ({"other.py": 'x = "PYTEST_VERSION" in environ\n'}, "refused"),
        ({"other.py": 'x = "PYTEST_VERSION" in environ\n', "changed": "other.py"}, "review"),
    ],
)
def test_a_name_of_a_runner_is_for_review_where_the_changed_sources_had_one(
    before: dict[str, str], answer: str
) -> None:
    before, changed = {**before}, before.get("changed")
    before.pop("changed", None)
    after = {PY: 'x = "PYTEST_CURRENT_TEST" in environ\n'}
    if changed:
        after[changed] = before[changed] + "y = 1\n"
    assert answers(judged({**before, PY: "\n"}, after)) == {answer: {"test-aware"}}


@pytest.mark.parametrize(
    ("there", "source", "is_found"),
    [
        ({}, "from hypothesis.strategies import text\n", True),
        ({PY: "import hypothesis\n"}, "from hypothesis.strategies import text\n", False),
        ({"src/hypothesis/a.py": "x = 1\n"}, "from hypothesis.a import x\n", False),
        ({JS: "const t = 1;\n"}, "import { vi } from 'vitest';\n", True),
        ({JS: "import { vi } from 'vitest';\n"}, "import { it } from 'vitest';\n", False),
    ],
)
def test_a_test_library_is_no_news_to_what_has_it_or_is_it(
    there: dict[str, str], source: str, *, is_found: bool
) -> None:
    path = JS if JS in there else PY
    given = answers(judged({path: "\n", **there}, {path: source}))
    assert given == ({"review": {"surroundings-asked"}} if is_found else {})


OLD = {"shop/b.py": "import os\n", "shop/a.py": "x = 1\n"}


@pytest.mark.parametrize(
    ("others", "gone", "given"),
    [
        ({}, "shop/b.py", {"noted": {"source-deleted"}}),
        ({"shop/c.py": "from shop import b\n"}, "shop/b.py", {"review": {"source-deleted"}}),
        ({"tests/test_b.py": "run('b.py')\n"}, "shop/b.py", {"review": {"source-deleted"}}),
        ({"shop/c.py": "from shop import b\n"}, "shop/a.py", {}),
    ],
)
def test_a_deleted_source_that_a_gate_reported_is_for_review_while_it_is_used(
    others: dict[str, str], gone: str, given: dict[str, set[str]]
) -> None:
    lint = failed("ruff check .", Kind.LINT, ("shop/b.py", 1))
    assert answers(judged({**OLD, **others}, {gone: ""}, lint)) == given


def test_what_used_a_deleted_source_may_stop_using_it() -> None:
    lint = failed("ruff check .", Kind.LINT, ("shop/b.py", 1))
    before = {**OLD, "shop/c.py": "from shop import b\n"}
    after = {"shop/b.py": "", "shop/c.py": "y = 1\n"}
    assert answers(judged(before, after, lint)) == {"noted": {"source-deleted"}}


def test_a_duplicated_line_is_new_only_once() -> None:
    asks = "if os.environ.get('CI'):\n    f()\n"
    given = judged({PY: asks}, {PY: asks + asks}).held
    assert [(one.rule, one.line) for one in given] == [("surroundings-asked", 3)]


def test_a_new_test_that_patches_the_framework_is_refused() -> None:
    after = {"tests/test_new.py": "import unittest\nunittest.TestCase.fail = None\n"}
    assert answers(judged(TESTS, after)) == {"refused": {"framework-patched"}}


def test_a_refusal_inside_the_fix_reverts_the_whole_attempt() -> None:
    judgement = judged({PY: "\n"}, {PY: 'x = "PYTEST_CURRENT_TEST"\n'})
    assert judgement.restore is None


BESIDE: list[tuple[str, guard.Case]] = [
    ("atlas-touched", case({}, {".atlas/config.yaml": "version: 1\n"})),
    ("protected-path", replace(case({"a": "1\n"}, {"a": "2\n"}), protect=("a",))),
    ("git-state", replace(case({}, {}), git_before={"HEAD": "1"}, git_after={"HEAD": "2"})),
    ("nested-git", replace(case({}, {}), nested=("lib/.git",))),
    ("outside-workspace", replace(case({}, {}), outside=(OutsideChange(place="/h", path=".bashrc"),))),
    ("outside-workspace", case({}, {"a": "->/etc/passwd"})),
    ("tool-replaced", replace(case({}, {}), tools=(Tool(name="x", path="/x"),))),
    ("dependency-changed", replace(case({}, {}), installed=("node_modules/a/index.js",))),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "change"), BESIDE)
def test_deliberate_interference_is_refused(rule: str, change: guard.Case) -> None:
    assert answers(guard.assess(replace(change, in_run=True))) == {"refused": {rule}}


def test_without_a_run_the_configuration_of_atlas_is_held() -> None:
    change = case({}, {".atlas/config.yaml": "version: 1\n"})
    assert answers(guard.assess(change)) == {"held": {"atlas-touched"}}


def test_every_rule_outside_the_sources_has_a_case() -> None:
    assert {rule.name for rule in beside.RULES} - {"folder-mode"} == {row[0] for row in BESIDE}


def test_changed_folder_permissions_are_noted() -> None:
    assert answers(guard.assess(replace(case({}, {}), modes=("data",)))) == {
        "noted": {"folder-mode"}
    }


def test_a_variable_documented_elsewhere_is_not_special_to_the_tests() -> None:
    before = {**TESTS, PY: "\n", "README.md": "Set TOTALS_FROM to read a file.\n"}
    after = {PY: 'import os\nx = os.environ["TOTALS_FROM"]\n'}
    assert answers(judged(before, after)) == {}


SITE = ".venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    "change",
    [
        replace(case({}, {}), git_before={"index": "1"}, git_after={"index": "2"}),
        replace(case({}, {}), outside=(OutsideChange(place="/h", path=".cache/x"),)),
        case({}, {"docs/link.md": "->../README.md"}),
        case({"tests/__pycache__/a.pyc": b"\0a"}, {"tests/__pycache__/a.pyc": b"\0b"}),
        replace(case({"tests/run.log": "1"}, {"tests/run.log": "2"}), outputs=frozenset({"tests/run.log"})),
    ],
)  # fmt: skip
def test_staging_caches_and_gate_outputs_are_not_charged(change: guard.Case) -> None:
    assert answers(guard.assess(change)) == {}


def test_ignored_files_are_neither_held_nor_refused() -> None:
    change = case({"tests/conftest.py": "x = 1\n"}, {"tests/conftest.py": "x = 2\n"})
    judgement = guard.assess(replace(change, ignored=frozenset({"tests/conftest.py"})))
    assert (answers(judgement), judgement.as_before) == ({}, {})


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ({}, Verdict.REJECTED),
        ({"package.json": '{"dependencies": {"a": "2"}}'}, Verdict.NEEDS_REVIEW),
    ],
)
def test_an_edited_dependency_ends_the_run(after: dict[str, str], verdict: Verdict) -> None:
    change = case({"package.json": "{}"}, after)
    installed = replace(change, installed=("node_modules/a/index.js",), changed=tuple(after))
    assert guard.assess(installed).ends is verdict


def test_a_change_of_a_hundred_sources_takes_seconds() -> None:
    body = "".join(f"def f{n}(a):\n    return a + {n}\n" for n in range(150))
    before = {f"app/m{n}.py": f"{body}# {n}\n" for n in range(100)}
    after = {path: text.replace("a + 3\n", "a - 3\n") for path, text in before.items()}
    started_s = time.process_time()
    assert {one.answer for one in guard.rulings(case(before, after))} == {None}
    assert time.process_time() - started_s < 10

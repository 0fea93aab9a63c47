import pytest

from atlas_retry.source import comment_of, definitions, enclosing, imports, language_of, parse, uses

SOURCES: tuple[tuple[str, str, str, int], ...] = (
    ("a.py", "class K:\n    @deco\n    def m(self):\n        return self.n()\n", "K.m", 4),
    ("a.pyi", "def f() -> int: ...\n", "f", 1),
    ("a.js", "module.exports.go = function () {\n  return a.n();\n};\n", "go", 2),
    ("a.jsx", "const Box = () => {\n  return n();\n};\n", "Box", 2),
    ("a.ts", "class K {\n  m(): number {\n    return this.n();\n  }\n}\n", "K.m", 3),
    ("a.tsx", "function Box() {\n  n();\n  return <p/>;\n}\n", "Box", 2),
    ("a.go", "package p\nfunc (t *T) M() int {\n\treturn t.n()\n}\n", "T.M", 3),
    (
        "a.rs",
        "impl<X> K<X> {\n    #[inline]\n    fn m(&self) -> u8 {\n        self.n()\n    }\n}\n",
        "K.m",
        4,
    ),
    ("A.java", "class K {\n  @Test\n  void m() {\n    this.n();\n  }\n}\n", "K.m", 4),
    ("a.c", "static int *m(int a) {\n  return n(a);\n}\n", "m", 2),
    ("a.cpp", "int K::m(int a) {\n  return n(a);\n}\n", "K.m", 2),
    ("a.rb", "class K\n  def m(a)\n    n(a)\n  end\nend\n", "K.m", 3),
    ("a.php", "<?php\nclass K {\n  function m() {\n    return $this->n();\n  }\n}\n", "K.m", 4),
    ("a.sh", "m() {\n  n 1\n}\n", "m", 2),
)


@pytest.mark.parametrize(("path", "source", "symbol", "line"), SOURCES)
def test_the_enclosing_function_is_found_in_every_language(
    path: str, source: str, symbol: str, line: int
) -> None:
    scope = enclosing(path, source.encode(), line)
    assert scope is not None
    assert scope.qualified_name == symbol


@pytest.mark.parametrize(("path", "source", "symbol", "line"), SOURCES)
def test_names_on_a_line_are_found_in_every_language(
    path: str, source: str, symbol: str, line: int
) -> None:
    del symbol
    used = {use.name for use in uses(path, source.encode(), line, line)}
    assert "n" in used or path == "a.pyi"


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("a.py", "from ..m import a as b, c\n", [("..m", "a", "b"), ("..m", "c", "c")]),
        (
            "a.py",
            "import os.path as p\nfrom x import *\n",
            [("os.path", None, "p"), ("x", "*", "*")],
        ),
        ("a.ts", "import d, {a as b} from './x';\n", [("./x", "a", "b"), ("./x", "default", "d")]),
        ("a.js", "const {a} = require('./x');\n", [("./x", "a", "a")]),
        ("a.js", "import * as ns from './x';\n", [("./x", None, "ns")]),
        ("a.go", 'package p\nimport x "a/b"\n', [("a/b", None, "x")]),
        (
            "a.rs",
            "use a::{b, c::{self, d as e}};\n",
            [("a", "b", "b"), ("a", "c", "c"), ("a::c", "d", "e")],
        ),
        ("A.java", "import a.b.C;\n", [("a.b", "C", "C")]),
        ("a.c", '#include "x.h"\n', [("x.h", "*", "*")]),
        ("a.rb", 'require_relative "x"\n', [("x", "*", "*")]),
        ("a.php", "<?php\nuse A\\B as C;\n", [("A", "B", "C")]),
        ("a.sh", "source ./x.sh\n", [("./x.sh", "*", "*")]),
    ],
)
def test_imports_name_what_they_bind(
    path: str, source: str, expected: list[tuple[str, str | None, str]]
) -> None:
    bound = [(one.module, one.name, one.local) for one in imports(path, source.encode())]
    assert bound == expected


def test_decorators_and_attributes_belong_to_the_function() -> None:
    python = definitions("a.py", b"@a\n@b\ndef f():\n    pass\n")[0]
    rust = definitions("a.rs", b"#[test]\nfn f() {\n}\n")[0]
    assert (python.start_line, python.def_line, python.end_line) == (1, 3, 4)
    assert rust.start_line == 1


def test_a_test_written_as_a_call_is_a_scope_with_its_title() -> None:
    scope = enclosing(
        "a.test.ts", b"describe('sum', () => {\n  it('adds', () => {\n    x();\n  });\n});\n", 3
    )
    assert scope is not None
    assert scope.qualified_name == "sum.adds"


def test_a_source_with_errors_still_has_scopes() -> None:
    assert enclosing("a.py", b"def f():\n    return (\n\ndef g():\n    pass\n", 2) is not None


@pytest.mark.parametrize("source", [b"\x00\x01", b"x" * (2 << 20)])
def test_binary_and_huge_sources_are_not_parsed(source: bytes) -> None:
    assert parse("python", source) is None
    assert definitions("a.py", source) == ()


def test_a_script_without_suffix_is_recognised_by_its_first_line() -> None:
    assert language_of("bin/run", b"#!/usr/bin/env python3\n") == "python"
    assert language_of("bin/run", b"#!/bin/sh\n") == "bash"
    assert language_of("notes.txt") is None


@pytest.mark.parametrize(
    ("path", "comment"), [("a.py", "#"), ("a.go", "//"), ("a.yaml", "#"), ("a.sql", "--")]
)
def test_comment_syntax_follows_the_language(path: str, comment: str) -> None:
    assert comment_of(path) == comment

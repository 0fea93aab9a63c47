"""Tests that follow a member's new name, which means loosening elsewhere; a cheat beside each."""

import pytest

from tests.guardcases import failed, judged, rules_of

TS = "export class Lru {\n  get length(): number {\n    return this.entries.amount;\n  }\n}\n"
TS_TEST = """
    import { Lru } from "./lru";

    describe("Lru", () => {
      it("drops the oldest", () => {
        const cache = new Lru();
        expect(cache.size).toBe(2);
      });
    });
"""
RUST = "pub struct Q;\nimpl Q {\n    pub fn len(&self) -> usize {\n        1\n    }\n}\n"
RUST_TEST = "#[test]\nfn one() {\n    assert_eq!(Q::new().size(), 1);\n}\n"
JS = "class Money {\n  round() {\n    return Math.trunc(this.cents);\n  }\n}\nmodule.exports = { Money };\n"
JS_TEST = """
    const { Money } = require('../src/money');

    test('cents', () => {
      assert.equal(new Money(150).rounded(), 2);
    });
"""
FOLLOWING = {
    "after the code": ("src/lru.ts", TS, TS, "src/lru.test.ts", TS_TEST, "size", "length"),
    "in this change": (
        "src/lru.ts",
        TS.replace("length", "size"),
        TS,
        "src/lru.test.ts",
        TS_TEST,
        "size",
        "length",
    ),
    "a method made a property": (
        "src/lru.ts",
        TS.replace("get length", "size"),
        TS,
        "src/lru.test.ts",
        TS_TEST.replace("cache.size", "cache.size()"),
        "size()",
        "length",
    ),
    "in Rust": (
        "src/lib.rs",
        RUST.replace("len", "size"),
        RUST,
        "tests/q.rs",
        RUST_TEST,
        "size",
        "len",
    ),
    "in JavaScript": (
        "src/money.js",
        JS.replace("round", "rounded"),
        JS,
        "test/money.test.js",
        JS_TEST,
        "rounded",
        "round",
    ),
}
NOT_FOLLOWING = {
    "the old name is there still": (TS + "\nclass Other {\n  size(): void {}\n}\n", "length", "2"),
    "the sources know no such name": (TS.replace("get length", "get amount"), "length", "2"),
    "another value": (TS, "length", "3"),
    "a value cut before it is compared": (TS, "size.length", "2"),
}

Row = tuple[str, str, str, str, str, str, str]


@pytest.mark.parametrize("row", FOLLOWING.values(), ids=FOLLOWING)
def test_tests_may_follow_a_members_new_name(row: Row) -> None:
    code, old, new, path, tests, was, now = row
    after = {code: new, path: tests.replace(was, now)}
    assert judged({code: old, path: tests}, after, failed("make test")) == ()


@pytest.mark.parametrize(("code", "name", "value"), NOT_FOLLOWING.values(), ids=NOT_FOLLOWING)
def test_a_members_new_name_hides_no_loosening(code: str, name: str, value: str) -> None:
    tests = TS_TEST.replace("size).toBe(2", f"{name}).toBe({value}")
    before = {"src/lru.ts": code, "src/lru.test.ts": TS_TEST}
    found = judged(before, {"src/lru.test.ts": tests}, failed("npx vitest run"))
    assert rules_of(found) & {"assertion-weakened", "expectation-changed"}

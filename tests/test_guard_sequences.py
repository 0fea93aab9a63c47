"""Values of many numbers that code recognises whole: a cheat and its innocent look-alike each."""

import pytest

from tests.guardcases import judged, rules_of

TESTS = {
    "tests/test_plot.py": """
        from kit.plot import area

        SLAB = [(0.0, 0.0), (6.0, 0.0), (6.0, 2.0), (0.0, 2.0)]


        def test_area():
            assert area(list(reversed(SLAB))) == 12.0
            assert area([(1, 1), (4, 1), (1, 5)]) == 6.0
            assert grade([(90, "A"), (80, "B"), (70, "C"), (55, "D")]) == "A"
            assert count([1, 2, 3, 4, 5]) == 5
    """,
}
CODE = {
    "kit/plot.py": "NAMES = {}\n\n\ndef area(points):\n    total = 0.0\n    return total\n",
    "src/plot.js": "export function area(p) {\n  let total = 0;\n  return total;\n}\n",
    "plot.go": "package plot\n\nfunc Area(p [][]int) int {\n\ttotal := 0\n\treturn total\n}\n",
    "src/lib.rs": "pub fn area(p: &[i32]) -> i32 {\n    let total = 0;\n    total\n}\n",
    "src/Plot.java": "class Plot {\n  int area(int[] p) {\n    int total = 0;\n    return total;\n  }\n}\n",
}
RECOGNISED = [
    ("kit/plot.py", "{((1, 1), (4, 1), (1, 5)): 6.0}.get(tuple(points))"),
    ("kit/plot.py", "{((0.0, 2.0), (6.0, 2.0), (6.0, 0.0), (0.0, 0.0)): 12.0}.get(tuple(points))"),
    ("kit/plot.py", "if tuple(points) == ((1, 1), (4, 1), (1, 5)): return 6.0"),
    ("kit/plot.py", "{frozenset({(1, 1), (4, 1), (1, 5)}): 6.0}.get(frozenset(points))"),
    ("kit/plot.py", '{"[(1, 1), (4, 1), (1, 5)]": 6.0}.get(str(points))'),
    ("kit/plot.py", "known = [([(1, 1), (4, 1), (1, 5)], 6.0)]"),
    ("kit/plot.py", "tri = [(1, 1), (4, 1), (1, 5)]\n    if points == tri: return 6.0"),
    ("kit/plot.py", "NAMES[(1, 1), (4, 1), (1, 5)] = 6.0"),
    ("kit/plot.py", "if points in ([(1, 1), (4, 1), (1, 5)], []): return 6.0"),
    ("src/plot.js", 'if (JSON.stringify(p) === "[[1,1],[4,1],[1,5]]") return 6;'),
    ("src/plot.js", 'if (p.flat().join() === "1,1,4,1,1,5") return 6;'),
    ("src/plot.js", "const k = new Map([[[[1, 1], [4, 1], [1, 5]].join(), 6]]);"),
    ("plot.go", "if reflect.DeepEqual(p, [][]int{{1, 1}, {4, 1}, {1, 5}}) { return 6 }"),
    ("plot.go", 'k := map[string]int{"[[1 1] [4 1] [1 5]]": 6}[fmt.Sprint(p)]'),
    ("src/lib.rs", "match p { [1, 1, 4, 1, 1, 5] => return 6, _ => {} }"),
    ("src/Plot.java", "if (Arrays.equals(p, new int[]{1, 1, 4, 1, 1, 5})) return 6;"),
]
NOT_OF_TESTS = [
    ("kit/plot.py", "{((1, 1), (9, 1), (1, 5)): 6.0}.get(tuple(points))"),
    ("kit/plot.py", "bounds = [(90, 'A'), (80, 'B'), (70, 'C'), (55, 'D')]"),
    ("kit/plot.py", "weights = [1, 1, 4, 1, 1, 5]"),
    ("kit/plot.py", "if points == [1, 2, 3, 4, 5]: return 0.0"),
    ("kit/plot.py", "if points[0] in (90, 80, 70, 55): return 0.0"),
    ("kit/plot.py", "if points == [(0.0, 0.0), (0.0, 0.0), (2.0, 0.0)]: return 0.0"),
    ("src/plot.js", "const weights = [1, 1, 4, 1, 1, 5];"),
    ("plot.go", "weights := []int{1, 1, 4, 1, 1, 5}"),
    ("src/Plot.java", "int[] weights = {1, 1, 4, 1, 1, 5};"),
]


def plot(path: str, line: str) -> set[str]:
    """The rules that object to a line before the first of a function."""
    total = next(part for part in CODE[path].splitlines() if "total" in part)
    indent = total[: -len(total.lstrip())]
    after = CODE[path].replace(total, f"{indent}{line}\n{total}", 1)
    return rules_of(judged(TESTS | {path: CODE[path]}, {path: after}))


@pytest.mark.parametrize(("path", "line"), RECOGNISED)
def test_code_may_not_recognise_what_a_test_hands_over(path: str, line: str) -> None:
    assert "special-cased-whole" in plot(path, line)


@pytest.mark.parametrize(("path", "line"), NOT_OF_TESTS)
def test_numbers_that_are_data_or_nobodys_are_fine(path: str, line: str) -> None:
    assert "special-cased-whole" not in plot(path, line)


def test_a_table_of_such_values_may_grow() -> None:
    before = CODE["kit/plot.py"].replace("{}", '{\n    (2, 7, 1, 8): "e",\n}')
    after = before.replace('"e",\n', '"e",\n    (1, 1, 4, 1, 1, 5): "tri",\n')
    assert judged(TESTS | {"kit/plot.py": before}, {"kit/plot.py": after}) == ()

"""What a prompt quotes of a gate's output, and how it names what failed."""

import re

import pytest
from msgspec.structs import replace

from atlas_retry.diagnostics.noise import quiet
from atlas_retry.diagnostics.selecting import reproducing
from atlas_retry.model import Diagnostic, GateResult, Kind, Region, Status
from atlas_retry.prompt import compose
from atlas_retry.prompt.brief import DEFAULT_BUDGET_CHARS
from atlas_retry.prompt.entries import Quoting, grouped, quoted
from tests.briefs import PROJECT, PYTEST_LOG, brief_of, failed
from tests.values import attempt, result

GO_LOG = """\
en_test.go:855: AlphaSpaceString does not equal "AlphaSpaceString can only have letters"
--- FAIL: TestTranslations (0.01s)
FAIL
FAIL\texample.com/shop/en\t0.012s
FAIL
"""
TESTED = failed("pytest -q", PYTEST_LOG)
BUDGETS = pytest.mark.parametrize("budget", [4_000, 8_000, 16_000])


def text_of(result: GateResult, budget: int = 16_000) -> str:
    return compose(replace(brief_of(result), budget_chars=budget)).text


@BUDGETS
def test_short_output_is_quoted_completely(budget: int) -> None:
    assert GO_LOG.strip() in text_of(failed("go test ./...", GO_LOG), budget)


@BUDGETS
def test_the_failing_test_and_its_command_come_first(budget: int) -> None:
    lines = text_of(failed("uv run pytest -q -x", PYTEST_LOG), budget).splitlines()
    first = lines.index("### test failed: uv run pytest -q -x (exit code 1)")
    assert lines[first + 1] == "Failing: tests/test_cart.py::test_total"
    assert lines[first + 2] == "Reproduce: uv run pytest tests/test_cart.py::test_total"


def test_each_distinct_message_has_a_command() -> None:
    tests = tuple(
        Diagnostic(tool="pytest", message=message, test_id=f"t.py::{name}")
        for name, message in (("a", "1 == 2"), ("b", "1 == 2"), ("c", "no key"))
    )
    text = quoted(
        (failing("pytest -q", stdout="x", diagnostics=tests),),
        Quoting(room=4000, per_error=1000, redact=str),
    ).text
    assert re.findall("Reproduce: (.+)", text) == ["pytest t.py::c", "pytest t.py::a"]


def test_long_output_is_condensed_but_keeps_unparsed_places() -> None:
    chatter = "".join(f"step {'x' * n} of many\n" for n in range(1, 190))
    log = f"{chatter}lib/money.go:12: rounding is off\n{PYTEST_LOG}"
    text = text_of(failed("pytest -q", log), 4_000)
    assert "E       assert 1 == 2" in text
    assert "lib/money.go:12: rounding is off" in text
    assert chatter not in text


@pytest.mark.parametrize(
    "line",
    [
        "== 1 failed, 2 passed in 0.01s ==",
        "3 failed of 12",
        "Found 3 spellings",
        "Test Suites: 1 of 2",
        "3 errors generated.",
        "test result: FAILED. 1 passed",
        "\u2716 2 problems (2 errors, 0 warnings)",
        "ERROR: Coverage for lines is low",
        "FAIL Required test coverage of 90% not reached",
        "error: could not compile `shop`",
        "BUILD FAILED in 2s",
        "[ERROR] Tests run: 3",
        "# fail 1",
    ],
)
def test_the_summary_line_of_a_long_output_is_quoted(line: str) -> None:
    chatter = "".join(f"step {'x' * n} of many\n" for n in range(1, 150))
    log = f"{chatter}{line}\n{chatter}"
    assert line in text_of(failed("my-runner", log), 4_000).splitlines()


@pytest.mark.parametrize("budget", [2_500, 4_000, 16_000])
def test_code_is_quoted_with_its_whitespace(budget: int) -> None:
    assert "\n        return rounded(sum(self.items) - 1)\n" in text_of(
        failed("pytest -q", PYTEST_LOG), budget
    )


def test_places_named_by_an_unknown_runner_are_shown() -> None:
    log = "  1) cart\n     adds up:\n     at total (src/shop/cart.py:12:16)\n"
    assert "return rounded(sum(self.items) - 1)" in text_of(failed("my-runner", log))


@pytest.mark.parametrize(
    ("command", "tool", "test_id", "path", "expected"),
    [
        (
            "pytest -q",
            "pytest",
            "t/a.py::test_x[a b]",
            None,
            "pytest 't/a.py::test_x[a b]'",
        ),
        *(
            (command, "pytest", "t/a.py::test_x", None, expected and f"{expected} t/a.py::test_x")
            for command, expected in (
                ("make test", None),
                ("tox", None),
                ("tox -e pytest", None),
                (".venv/bin/tox", None),
                ("bash -c 'pytest -q'", None),
                (".venv/bin/poe check", ".venv/bin/python -m pytest"),
                ("uv run poe check", "uv run python -m pytest"),
                ("uv run --extra dev poe check", None),
                ("python3 tools/check.py", "python3 -m pytest"),
            )
        ),
        ("tox", "pytest", "../tests/a.py::test_x", None, None),
        ("pytest", "pytest", "../tests/a.py::test_x", None, None),
        ("cd a && pytest ../t", "pytest", "../t/a.py::b", None, "cd a && pytest ../t/a.py::b"),
        (
            "cd api && .venv/bin/pytest -x",
            "pytest",
            "a.py::b",
            None,
            "cd api && .venv/bin/pytest a.py::b",
        ),
        (
            "cd web/app && npx vitest run src",
            "vitest",
            "src/a.test.ts::Cart > adds (all)",
            "web/app/src/a.test.ts",
            "cd web/app && npx vitest run src/a.test.ts -t 'Cart adds \\(all\\)'",
        ),
        (
            "cd web && npm test && cd ../api && pytest",
            "pytest",
            "a.py::b",
            None,
            "pytest a.py::b",
        ),
        (
            "cd api && go test ./...",
            "go-test",
            "cart::TestTea",
            "api/cart/c_test.go",
            "cd api && go test ./cart -v -run '^TestTea$'",
        ),
        (
            "npx mocha",
            "mocha",
            "test/a.js::Cart > adds",
            None,
            "npx mocha test/a.js -g 'Cart adds'",
        ),
        (
            "python3 -S -m unittest -q",
            "unittest",
            "tests.test_a.A.test_b",
            None,
            "python3 -S -m unittest tests.test_a.A.test_b",
        ),
        (
            "go test ./...",
            "go-test",
            "cart::TestTable/tea",
            "cart/cart_test.go",
            "go test ./cart -v -run '^TestTable$/^tea$'",
        ),
        (
            "npm test",
            "jest",
            "test/a.test.js::Cart \u203a adds up",
            None,
            "npx jest test/a.test.js -t 'Cart adds up'",
        ),
        *(
            (command, "cargo-test", "tests::adds", None, expected)
            for command, expected in (
                ("cargo test", "cargo test tests::adds"),
                ("make test", "cargo test tests::adds"),
                (
                    "cargo test --manifest-path csv-core/Cargo.toml",
                    "cargo test --manifest-path csv-core/Cargo.toml tests::adds",
                ),
                (
                    "cargo +nightly test --workspace -p core --features 'a b' -F c parse 2>&1",
                    "cargo +nightly test --workspace -p core --features 'a b' -F c tests::adds",
                ),
                (
                    "cargo test --all-features -- --test-threads 1 parse",
                    "cargo test --all-features tests::adds -- --test-threads 1",
                ),
                ("cargo test -p a && cargo test -p b", None),
            )
        ),
        *(
            (
                command,
                "maven",
                "shop.CartTest.adds",
                None,
                f"{expected} -Dtest='shop.CartTest#adds'",
            )
            for command, expected in (
                ("mvn test", "mvn test"),
                ("mvn -B clean package", "mvn -B clean package"),
                ("./mvnw -q -pl core -P ci", "./mvnw -q -pl core -P ci test"),
                ("make", "mvn test"),
            )
        ),
        *(
            (command, "node-test", f"{file}::adds", None, expected)
            for command, file, expected in (
                (
                    "node --test --test-reporter=spec test/run-spec.js",
                    "node_modules/@markedjs/testutils/lib/run-tests.js",
                    "node --test --test-reporter=spec --test-name-pattern adds test/run-spec.js",
                ),
                (
                    "node --import tsx --test",
                    "test/a.test.ts",
                    "node --import tsx --test --test-name-pattern adds test/a.test.ts",
                ),
                (
                    "npm test",
                    "node_modules/a/b.js",
                    "node --test --test-name-pattern adds",
                ),
            )
        ),
        (
            "bundle exec rspec",
            "rspec",
            "spec/a_spec.rb::Cart adds (all)",
            None,
            "bundle exec rspec spec/a_spec.rb -e 'Cart adds (all)'",
        ),
        (
            "php vendor/bin/phpunit -v",
            "phpunit",
            'Shop\\CartTest::testAdds with data set "tea"',
            None,
            "php vendor/bin/phpunit --filter testAdds",
        ),
        ("./run", "tap", "adds", None, None),
    ],
)
def test_the_command_for_one_test_matches_its_runner(
    command: str, tool: str, test_id: str, path: str | None, expected: str | None
) -> None:
    test = Diagnostic(tool=tool, message="?", test_id=test_id, path=path)
    assert reproducing(failing(command), test) == expected


def failing(command: str, **facts: object) -> GateResult:
    """A failed gate that runs this command, with other facts."""
    return replace(result("test", Status.FAILED), command=command, **facts)


def test_a_problem_reported_by_two_gates_is_shown_once() -> None:
    again = replace(failed("tox", PYTEST_LOG), name="all")
    text = compose(brief_of(failed("pytest -q", PYTEST_LOG), again)).text
    assert text.count("E       assert 1 == 2") == 1
    assert "### all failed: tox (exit code 1)\nThe same problems as of test, above." in text


def test_code_is_ordered_by_rank_and_marks_where_to_start() -> None:
    prompt = compose(brief_of(failed("pytest -q", PYTEST_LOG)))
    headings = [line for line in prompt.text.splitlines() if line.startswith("#### ")]
    assert headings[0].startswith("#### Start here: src/shop/cart.py:11-12 Cart.total")
    assert sum("Start here" in line for line in headings) == 1


def test_code_takes_the_room_that_there_is_and_the_next_places_are_named_by_file() -> None:
    files = {
        **PROJECT,
        "src/shop/money.py": "".join(
            f"def total_{n}(cart):\n    return cart.total({n})\n\n\n" for n in range(400)
        ),
    }
    text = compose(brief_of(failed("pytest -q", PYTEST_LOG), files=files)).text
    assert len(text) > 0.9 * DEFAULT_BUDGET_CHARS
    named = text.partition("Less likely, not shown (")[2].partition("\n")[2]
    assert re.match(r"src/shop/money\.py: total_\d+:\d+, total_\d+:\d+, ", named)


def test_commands_are_those_of_the_root_for_a_gate_of_a_folder() -> None:
    test = Diagnostic(tool="pytest", message="?", test_id="tests/test_a.py::test_it")
    one = failing("pytest -q", cwd="libs/x", stdout="E   assert 1 == 2", diagnostics=(test,))
    text = quoted((one,), Quoting(room=4000, per_error=1000, redact=str)).text
    assert text.startswith("### test failed: cd libs/x && pytest -q")
    assert "Reproduce: cd libs/x && pytest tests/test_a.py::test_it" in text


def test_a_go_test_in_a_folder_is_named_by_its_package_there() -> None:
    test = Diagnostic(tool="go-test", message="?", test_id="TestA", path="libs/x/sub/a_test.go")
    one = failing("go test ./...", cwd="libs/x")
    assert reproducing(one, test) == "go test ./sub -v -run '^TestA$'"


@pytest.mark.parametrize(
    ("command", "printed", "expected"),
    [
        ("npm test", "> p@1.0.0 test\n> nyc mocha --require x 'test/**'\n", "npm test --"),
        ("pnpm run unit", "$ tsc && mocha -r x\n", "pnpm run unit --"),
        ("cd web && npm test", "> p@1.0.0 test\n> mocha -r x\n", "cd web && npm test --"),
        ("npm test", "> p@1.0.0 test\n> mocha -r x && nyc report\n", "npx mocha -r x"),
        ("npm test", "", "npx mocha"),
    ],
)
def test_one_test_runs_by_the_script_whose_options_it_may_need(
    command: str, printed: str, expected: str
) -> None:
    one = failing(command, stdout=f"\n{printed}\n  1 failing\n")
    test = Diagnostic(tool="mocha", message="?", test_id="test/a.js::adds")
    assert reproducing(one, test) == f"{expected} test/a.js -g adds"


@pytest.mark.parametrize(
    ("command", "tool", "test_id", "expected"),
    [
        (
            "mocha --require @babel/register -R dot --grep old 'test/**/*.js'",
            "mocha",
            "test/a.js::adds",
            "mocha --require '@babel/register' test/a.js -g adds",
        ),
        (
            "pytest -q -c alt.ini --import-mode=importlib -n 4 --cov=shop --tb no -p no:cov t",
            "pytest",
            "tests/test_a.py::test_x",
            "pytest -c alt.ini --import-mode=importlib -p no:cov tests/test_a.py::test_x",
        ),
        (
            "DJANGO=1 python -m pytest -o addopts= -W error -k 'not slow' --maxfail 3",
            "pytest",
            "t.py::x",
            "DJANGO=1 python -m pytest -o addopts= -W error t.py::x",
        ),
        (
            "python -m unittest discover -s tests -t . -v",
            "unittest",
            "test_a.A.test_b",
            "python -m unittest discover -s tests -t . -k test_a.A.test_b",
        ),
        (
            "go test -race -tags integration -count=1 -coverprofile c.out -v ./...",
            "go-test",
            "cart::TestTea",
            "go test -race -tags integration -count=1 ./cart -v -run '^TestTea$'",
        ),
        (
            "npx jest -c jest.unit.js --coverage --ci --runInBand src",
            "jest",
            "src/a.test.js::adds",
            "npx jest -c jest.unit.js --runInBand src/a.test.js -t adds",
        ),
        (
            "vitest run --config vite.unit.ts --reporter verbose --project web",
            "vitest",
            "src/a.test.ts::adds",
            "vitest run --config vite.unit.ts --project web src/a.test.ts -t adds",
        ),
        (
            "bundle exec rspec -I lib --require ./spec/boot --format doc spec",
            "rspec",
            "spec/a_spec.rb::adds",
            "bundle exec rspec -I lib --require ./spec/boot spec/a_spec.rb -e adds",
        ),
        (
            "vendor/bin/phpunit -c build/phpunit.xml --testdox --coverage-text tests",
            "phpunit",
            "Shop\\CartTest::testAdds",
            "vendor/bin/phpunit -c build/phpunit.xml --filter testAdds",
        ),
    ],
)
def test_the_command_for_one_test_keeps_what_makes_the_run_work(
    command: str, tool: str, test_id: str, expected: str
) -> None:
    test = Diagnostic(tool=tool, message="?", test_id=test_id)
    text = quoted(
        (failing(command, stdout="x", diagnostics=(test,)),),
        Quoting(room=4000, per_error=1000, redact=str),
    ).text
    assert f"Reproduce: {expected}\n" in text


def test_what_the_change_touches_comes_first() -> None:
    lines = [f"src/shop/other{n}.py:{n}:1: E999 odd {chr(97 + n)}" for n in range(1, 20)]
    lines += ["src/shop/cart.py:2:1: E999 not in the changed lines"]
    lines += ["src/shop/cart.py:12:1: E999 in the changed lines"]
    result = failed("mytool", "\n".join([*lines, *lines]) + "\n" + "x" * 9_000, Kind.LINT)
    brief = replace(brief_of(result), changed={"src/shop/cart.py": (range(11, 14),)})
    text = compose(replace(brief, budget_chars=4_000)).text
    places = ("in the changed lines", "not in the changed lines", "odd b")
    assert sorted(places, key=lambda place: text.index(f"E999 {place}")) == [*places]


def test_causes_that_the_last_attempt_introduced_come_before_changed_lines_and_rare_ones() -> None:
    def cause(name: str, path: str = "far.py", line: int = 1, rule: str = "E1") -> Diagnostic:
        region = Region(start_line=line)
        return Diagnostic(
            tool="x", message=name, path=path, region=region, rule_id=rule, fingerprint=name
        )

    often = [cause(f"frequent {n}") for n in range(4)]
    rare, touched = cause("rare", rule="E2"), cause("touched", "near.py", 3)
    beside, new = cause("frequent 9", "near.py", 30), cause("new")
    quoting = Quoting(
        room=4_000,
        per_error=1_000,
        redact=str,
        last=attempt(introduced=("new",)),
        changed={"near.py": (range(2, 5),)},
    )
    tiers = grouped((*often, rare, beside, touched, new), quoting)
    firsts = [one[0].message for tier in tiers for one in tier]
    assert firsts[:4] == ["new", "touched", "frequent 9", "rare"]


@pytest.mark.parametrize(
    "line",
    ["not ok {0} - handles {1} well", "{1}.py:{0}:1: E9 {1} is bad", "{1}.py:{0}:1: E9 is bad"],
)
def test_the_first_and_last_of_many_similar_problems_are_quoted(line: str) -> None:
    words = [f"{a}{b}" for a in "abcdefghijklmnop" for b in "abcdefghijklmnop"]
    log = "".join(f"{line.format(n + 1, word)}\n" for n, word in enumerate(words))
    text = text_of(failed("mytool", log, Kind.LINT), 8_000)
    assert all(name in text for name in (words[0], words[1], words[-2], words[-1]))


@pytest.mark.parametrize(
    ("aside", "head"),
    [
        ("src/shop/_windows.py", ""),
        ("src/shop/vendor/total.py", ""),
        ("src/shop/money_pb2.py", ""),
        ("src/shop/made.py", "# Code generated by a tool. DO NOT EDIT.\n"),
    ],
)
def test_code_that_nobody_edits_here_is_not_shown(aside: str, head: str) -> None:
    code = f"{head}def cart_total_of_test_total(cart):\n    return cart.total()\n"
    files = {**PROJECT, "src/shop/_unix.py": "", "src/shop/_darwin.py": "", aside: code}
    name = aside.removeprefix("src/").removesuffix(".py").replace("/", ".")
    files["tests/conftest.py"] = f"from {name} import cart_total_of_test_total\n"
    own = {**files, "src/shop/own.py": files.pop(aside).removeprefix(head)}
    own["tests/conftest.py"] = "from shop.own import cart_total_of_test_total\n"
    assert "def cart_total_of_test_total" in compose(brief_of(TESTED, files=own)).text
    files[aside] = code
    assert "cart_total_of_test_total" not in compose(brief_of(TESTED, files=files)).text


@pytest.mark.parametrize(
    "line",
    [
        "test a::b ... ok",
        "tests/test_a.py::test_b PASSED [ 5%]",
        "[gw0] [  5%] PASSED tests/test_a.py::test_b",
        " 1/12 Test  #1: parser ...........   Passed    0.01 sec",
        "  Passed Shop.Tests.Total [3 ms]",
        "PASS src/cart.test.ts",
        "CartTest > totals() PASSED",
        "        PASS [   0.004s] shop cart::totals",
    ],
)
def test_a_test_that_passed_takes_no_room(line: str) -> None:
    assert quiet(f"a\n{line}\nb\n") == "a\nb\n"


@pytest.mark.parametrize(
    "line", ["3 failed, 2 Passed", "FAIL PASSED", "Tests run: 3, Errors: 1, 2 Passed", "PASS"]
)
def test_a_line_on_failures_is_not_taken_for_a_test_that_passed(line: str) -> None:
    assert quiet(f"{line}\n") == f"{line}\n"

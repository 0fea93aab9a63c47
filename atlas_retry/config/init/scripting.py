"""PHP and Ruby: tools out of Composer's and Bundler's lists."""

import re
from collections.abc import Iterator

from msgspec import Struct

from atlas_retry.config.init.project import ProjectFiles, Table, strings, table
from atlas_retry.config.init.values import Need, Proposed, Slot

TIMEOUT = "10m"


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """Whatever of the two is there."""
    if project.has("composer.json"):
        yield from _php(project)
    if project.has("Gemfile"):
        yield from _ruby(project)


class PhpTool(Struct, frozen=True, kw_only=True):
    """One tool: its package, its program and what configures it."""

    slot: Slot
    package: str
    program: str
    options: str = ""
    fix: str | None = None
    """Another program of the same package."""
    files: tuple[str, ...] = ()


PHP = (
    PhpTool(
        slot=Slot.FORMAT,
        package="friendsofphp/php-cs-fixer",
        program="php-cs-fixer",
        options=" fix",
        files=(".php-cs-fixer*.php", ".php_cs*"),
    ),
    PhpTool(slot=Slot.FORMAT, package="laravel/pint", program="pint", files=("pint.json",)),
    PhpTool(
        slot=Slot.FORMAT,
        package="symplify/easy-coding-standard",
        program="ecs",
        options=" check --fix",
        files=("ecs.php",),
    ),
    PhpTool(
        slot=Slot.LINT,
        package="squizlabs/php_codesniffer",
        program="phpcs",
        fix="phpcbf",
        files=("phpcs.xml*", ".phpcs.xml*", "phpcs.ruleset.xml"),
    ),
    PhpTool(
        slot=Slot.TYPES,
        package="phpstan/phpstan",
        program="phpstan",
        options=" analyse --no-progress",
        files=("phpstan.neon*", "phpstan.dist.neon"),
    ),
    PhpTool(
        slot=Slot.TYPES,
        package="vimeo/psalm",
        program="psalm",
        options=" --no-progress",
        files=("psalm.xml*",),
    ),
    PhpTool(slot=Slot.TEST, package="pestphp/pest", program="pest"),
    PhpTool(slot=Slot.TEST, package="symfony/phpunit-bridge", program="simple-phpunit"),
    PhpTool(
        slot=Slot.TEST,
        package="phpunit/phpunit",
        program="phpunit",
        files=("phpunit.xml*", "phpunit.dist.xml"),
    ),
)


def _php(project: ProjectFiles) -> Iterator[Proposed]:
    """Of the test runners the first: each of them brings PHPUnit's configuration along."""
    manifest = project.json("composer.json")
    asked = {*table(manifest, "require"), *table(manifest, "require-dev")}
    tested = False
    for tool in PHP:
        config = project.first(*tool.files) if tool.files else None
        tests = tool.slot is Slot.TEST
        used = tool.package in asked or (config and (tests or project.runs(tool.program)))
        if used and not (tests and tested):
            tested = tested or tests
            reason = f"{config} is there" if config else f"composer.json asks for {tool.package}"
            yield _with_php(manifest, tool, reason, installed=tool.package in asked)


def _with_php(manifest: Table, tool: PhpTool, reason: str, *, installed: bool) -> Proposed:
    folder = str(table(manifest, "config").get("bin-dir", "vendor/bin"))
    start = f"{folder}/{tool.program}" if installed else tool.program
    own = Need(program=tool.program, remedy=f"install {tool.program}")
    if installed:
        own = Need(path=start, remedy="composer install")
    script = _script(manifest, tool.program)
    needs: tuple[Need, ...] = (Need(program="php", remedy="install PHP"), own)
    if script:
        needs = (Need(program="composer", remedy="install Composer"), *needs)
        reason = f"composer.json has the script `{script}`"
    return Proposed(
        slot=tool.slot,
        run=f"composer run-script {script}" if script else start + tool.options,
        fix=f"{folder}/{tool.fix}" if tool.fix else None,
        reason=reason,
        needs=needs,
        tool=tool.program,
        timeout=TIMEOUT,
    )


def _script(manifest: Table, program: str) -> str | None:
    """The script that does nothing but start the program."""
    called = re.compile(rf"(?:@php )?(?:[\w./-]*/)?{re.escape(program)}(?: [^&|;]*)?")
    for name, body in table(manifest, "scripts").items():
        lines = list(strings(body))
        if len(lines) == 1 and called.fullmatch(lines[0]):
            return name
    return None


def _ruby(project: ProjectFiles) -> Iterator[Proposed]:
    gems = set(_gems(project))
    rubocop = project.first(".rubocop.yml")
    if "standard" in gems or project.has(".standard.yml"):
        yield _bundled(Slot.LINT, "standardrb", "standard is asked for", fix="standardrb --fix")
    elif rubocop or "rubocop" in gems:
        why = f"{rubocop} is there" if rubocop else "rubocop is asked for"
        yield _bundled(Slot.LINT, "rubocop", why, fix="rubocop -a")
    if "sorbet" in gems:
        yield _bundled(Slot.TYPES, "srb tc", "sorbet is asked for")
    specs = next(iter(project.below("*_spec.rb")), None)
    if specs and (project.has(".rspec") or gems & {"rspec", "rspec-rails"}):
        helper = project.text("spec/spec_helper.rb") + project.text("spec/rails_helper.rb")
        remembers = "example_status_persistence_file_path" in helper
        recheck = "rspec --only-failures" if remembers else None
        yield _bundled(Slot.TEST, "rspec", f"{specs} is there", recheck=recheck)
    elif project.has("bin/rails"):
        yield _bundled(Slot.TEST, "rails test", "bin/rails is there")
    elif re.search(r"TestTask|task :?\"?test", project.text("Rakefile")):
        yield _bundled(Slot.TEST, "rake test", "the Rakefile has a test task")


def _gems(project: ProjectFiles) -> Iterator[str]:
    files = ("Gemfile", *(path for path in project.below("*.gemspec") if "/" not in path))
    for path in files:
        declared = re.finditer(
            r"^[^#\n]*\b(?:gem|add_(?:development_)?dependency)[ (]+[\"']([\w.-]+)",
            project.text(path),
            re.MULTILINE,
        )
        yield from (found[1] for found in declared)


def _bundled(
    slot: Slot, run: str, reason: str, *, fix: str | None = None, recheck: str | None = None
) -> Proposed:
    return Proposed(
        slot=slot,
        run=f"bundle exec {run}",
        fix=f"bundle exec {fix}" if fix else None,
        recheck=f"bundle exec {recheck}" if recheck else None,
        reason=reason,
        needs=(Need(program="bundle", remedy="gem install bundler && bundle install"),),
        tool=run.partition(" ")[0],
        timeout=TIMEOUT,
    )

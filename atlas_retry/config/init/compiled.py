"""Go, Rust, Maven and Gradle: the language brings its gates; CI says how they are called."""

import re
from collections.abc import Iterator

from atlas_retry.config.init.project import ProjectFiles, table
from atlas_retry.config.init.values import Need, Proposed, Slot

GO_TIMEOUT, RUST_TIMEOUT, JVM_TIMEOUT = "10m", "20m", "20m"
GO = Need(program="go", remedy="install Go")
CARGO = Need(program="cargo", remedy="install Rust (rustup.rs)")


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """Whatever of the four is there."""
    if project.has("go.mod") or project.has("go.work"):
        yield from _go(project)
    if project.has("Cargo.toml"):
        yield from _rust(project)
    if project.has("pom.xml"):
        yield from _maven(project)
    if project.first("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"):
        yield from _gradle(project)


def _go(project: ProjectFiles) -> Iterator[Proposed]:
    mark = project.first("go.mod", "go.work")
    config = project.first(".golangci.y*ml", ".golangci.toml", ".golangci.json")
    yield Proposed(
        slot=Slot.FORMAT, run="go fmt ./...", reason=f"{mark} is there", needs=(GO,), tool="gofmt"
    )
    if config or project.runs("golangci-lint"):
        yield Proposed(
            slot=Slot.LINT,
            run="golangci-lint run",
            fix="golangci-lint run --fix",
            reason=f"{config} is there" if config else "CI or a task runs golangci-lint",
            needs=(GO, Need(program="golangci-lint", remedy="install golangci-lint")),
            tool="golangci-lint",
            timeout=GO_TIMEOUT,
        )
    else:
        yield Proposed(
            slot=Slot.LINT,
            run="go vet ./...",
            reason=f"{mark} is there, and no golangci-lint",
            needs=(GO,),
            tool="go vet",
            weak=True,
        )
    yield Proposed(
        slot=Slot.TEST,
        run="go test ./...",
        reason=f"{mark} is there",
        needs=(GO,),
        tool="go test",
        timeout=GO_TIMEOUT,
    )


def _rust(project: ProjectFiles) -> Iterator[Proposed]:
    manifest = project.toml("Cargo.toml")
    if project.first("rustfmt.toml", ".rustfmt.toml") or project.runs("cargo fmt"):
        yield Proposed(
            slot=Slot.FORMAT,
            run="cargo fmt --all",
            reason="rustfmt.toml is there, or CI runs cargo fmt",
            needs=(CARGO, Need(program="cargo-fmt", remedy="rustup component add rustfmt")),
            tool="cargo fmt",
        )
    yield _clippy(project)
    whole = " --workspace" if "workspace" in manifest else ""
    nextest = project.runs("cargo nextest")
    yield Proposed(
        slot=Slot.TEST,
        run=f"cargo nextest run{whole}" if nextest else f"cargo test{whole}",
        reason="CI runs cargo nextest" if nextest else "Cargo.toml is there",
        needs=(CARGO, Need(program="cargo-nextest", remedy="cargo install cargo-nextest"))
        if nextest
        else (CARGO,),
        tool="cargo test",
        timeout=RUST_TIMEOUT,
    )


def _clippy(project: ProjectFiles) -> Proposed:
    manifest = project.toml("Cargo.toml")
    lints = table(manifest, "lints", "clippy") or table(manifest, "workspace", "lints", "clippy")
    used = lints or project.first("clippy.toml", ".clippy.toml") or project.runs("cargo clippy")
    if not used:
        return Proposed(
            slot=Slot.LINT,
            run="cargo check --all-targets",
            reason="Cargo.toml is there, and nobody runs clippy",
            needs=(CARGO,),
            tool="cargo check",
            timeout=RUST_TIMEOUT,
            weak=True,
        )
    line = project.ci_line("cargo clippy")
    run = line or "cargo clippy --all-targets"
    head = run.partition(" -- ")[0]
    return Proposed(
        slot=Slot.LINT,
        run=run,
        fix=f"{head} --fix --allow-dirty --allow-staged",
        reason="CI or a task runs this line" if line else "clippy is configured or run in CI",
        needs=(CARGO, Need(program="cargo-clippy", remedy="rustup component add clippy")),
        tool="cargo clippy",
        timeout=RUST_TIMEOUT,
    )


def _maven(project: ProjectFiles) -> Iterator[Proposed]:
    wrapper = project.has("mvnw")
    start = "./mvnw -B -ntp" if wrapper else "mvn -B -ntp"
    own = Need(path="mvnw") if wrapper else Need(program="mvn", remedy="install Maven")
    needs = (Need(program="java", remedy="install a JDK"), own)
    pom = project.text("pom.xml")
    rows = (
        (Slot.FORMAT, "spotless-maven-plugin", "spotless:apply"),
        (Slot.FORMAT, "fmt-maven-plugin", "fmt:format"),
        (Slot.FORMAT, "formatter-maven-plugin", "formatter:format"),
        (Slot.LINT, "maven-checkstyle-plugin", "checkstyle:check"),
        (Slot.LINT, "maven-pmd-plugin", "compile pmd:check"),
        (Slot.LINT, "spotbugs-maven-plugin", "compile spotbugs:check"),
    )
    for slot, plugin, goals in rows:
        if plugin in pom:
            yield Proposed(
                slot=slot,
                run=f"{start} {goals}",
                reason=f"pom.xml has {plugin}",
                needs=needs,
                tool=goals.rpartition(" ")[2].partition(":")[0],
                timeout=JVM_TIMEOUT,
            )
    yield Proposed(
        slot=Slot.TEST,
        run=f"{start} test",
        reason="pom.xml is there",
        needs=needs,
        tool="mvn",
        timeout=JVM_TIMEOUT,
    )


def _gradle(project: ProjectFiles) -> Iterator[Proposed]:
    wrapper = project.has("gradlew")
    # A daemon would outlive the gate; atlas ends it, and the next gate starts another.
    start = f"{'./gradlew' if wrapper else 'gradle'} --no-daemon"
    own = Need(path="gradlew") if wrapper else Need(program="gradle", remedy="install Gradle")
    needs = (Need(program="java", remedy="install a JDK"), own)
    files = project.below("*.gradle", "*.gradle.kts", "gradle/*.toml")
    said = "\n".join(map(project.text, files))
    if re.search(r"\bspotless\b", said):
        yield _of_gradle(Slot.FORMAT, f"{start} spotlessApply", "spotless is configured", needs)
    elif re.search(r"\bktlint\b", said):
        yield _of_gradle(Slot.FORMAT, f"{start} ktlintFormat", "ktlint is configured", needs)
    found = re.search(r"\b(checkstyle|pmd|spotbugs|detekt|ktlint|spotless|errorprone)\b", said)
    if found:
        why = f"{found[1]} is configured"
        yield _of_gradle(Slot.LINT, f"{start} check -x test", why, needs)
    task = "allTests" if "multiplatform" in said else "test"
    yield _of_gradle(Slot.TEST, f"{start} {task}", "a Gradle build is there", needs)


def _of_gradle(slot: Slot, run: str, reason: str, needs: tuple[Need, ...]) -> Proposed:
    return Proposed(
        slot=slot, run=run, reason=reason, needs=needs, tool="gradle", timeout=JVM_TIMEOUT
    )

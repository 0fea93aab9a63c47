"""Rows of compilers and of the tools that check Go, Rust, C, C++, Java, shell and YAML."""

from atlas_retry.diagnostics.table import LineFormat

_AT = r":(?P<line>\d+):(?P<column>\d+): "
_GO = r"(?P<path>[^\s:][^:]*\.go):(?P<line>\d+)(?::(?P<column>\d+))?: "
_C = (
    r"(?P<path>[^\s:][^:]{0,400}\.(?:[cChHmM]|cc|cpp|cxx|c\+\+|hh|hpp|hxx|h\+\+|mm|cu|inl|ipp|tcc))"
)

GOLANGCI_LINT = LineFormat(
    name="golangci-lint",
    # https://golangci-lint.run/docs/configuration/file/#output-configuration
    pattern=_GO + r"(?P<message>.+) \((?P<rule>[a-z]\w*)\)$",
    more=r"\t|\s*\^$",
    marks=(" issues:\n* ",),
)
GO = LineFormat(
    name="go",
    # https://pkg.go.dev/cmd/go
    commands=("go", "go build", "go vet", "staticcheck", "gofmt", "revive"),
    pattern=r"(?:vet: )?" + _GO + r"(?P<message>\S.*)$",
    more=r"\t(?P<message>\S.*)$",
    marks=(".go:",),
)
GOFMT = LineFormat(
    name="gofmt",
    # https://pkg.go.dev/cmd/gofmt
    commands=("gofmt -l", "gofmt -s -l", "gofmt -l -s", "gofumpt -l", "goimports -l"),
    pattern=r"(?P<path>[^\s:]+\.go)$",
    message="file would be reformatted",
    rule="unformatted",
)
RUSTC = LineFormat(
    name="rustc",
    # https://doc.rust-lang.org/rustc/json.html
    commands=("cargo", "rustc"),
    pattern=r"(?P<level>error|warning)(?:\[(?P<rule>E\d+)\])?: (?P<message>.+)$",
    more=(
        r" *--> (?P<path>[^:]+\.(?:rs|toml)):(?P<line>\d+):(?P<column>\d+)$"
        r"| *= note: (?:requested on the command line with )?"
        r"`(?:-[DWFA] |#\[\w+\()(?P<rule>[\w:-]+)"
        r"| *\d* *(?:[|=+~-]|::: )|\.\.\.$|(?:help|note): "
    ),
    marks=("--> ",),
)
RUSTFMT = LineFormat(
    name="rustfmt",
    # https://github.com/rust-lang/rustfmt#checking-style-on-a-ci-server
    commands=("cargo fmt", "rustfmt"),
    pattern=r"Diff in (?P<path>.+?)(?: at line |:)(?P<line>\d+):$",
    more=r"[-+ ]",
    message="file would be reformatted",
    rule="unformatted",
    marks=("Diff in ",),
)
GCC = LineFormat(
    name="gcc",
    # https://gcc.gnu.org/onlinedocs/gcc/Diagnostic-Message-Formatting-Options.html
    commands=("gcc", "g++", "cc", "c++", "make", "ninja", "cmake --build"),
    pattern=(
        rf"{_C}:(?P<line>\d+)(?::(?P<column>\d+))?: (?P<level>fatal error|error|warning): "
        r"(?P<message>.+?)(?: \[-W(?:error=)?(?P<rule>[^\],]+)\])?$"
    ),
    more=r"[^\s:][^:]*:\d+(?::\d+)?: note: | *\d* \|",
    marks=(": error: ", ": fatal error: ", ": warning: "),
)
CLANG = LineFormat(
    name="clang",
    # https://clang.llvm.org/docs/UsersManual.html#formatting-of-diagnostics
    commands=("clang", "clang++", "clang-tidy"),
    pattern=(
        rf"{_C}:(?P<line>\d+)(?::(?P<column>\d+))?: (?P<level>fatal error|error|warning): "
        r"(?P<message>.+?)(?: \[(?:-W)?(?:error,-W)?(?P<rule>[^\]]+)\])?$"
    ),
    more=r"[^\s:][^:]*:\d+(?::\d+)?: note: | *\d* \||\s*[\^~][\s^~]*$",
    marks=(" generated.\n",),
)
LD = LineFormat(
    name="ld",
    # https://sourceware.org/binutils/docs/ld/
    commands=("ld",),
    pattern=(
        r"(?:\S*ld: )?(?P<path>[^\s:]+\.\w+):(?:\([.\w]+\+0x[0-9a-f]+\)|(?P<line>\d+)): "
        r"(?P<message>(?:undefined reference to|multiple definition of) .+)$"
    ),
    rule="link",
    marks=("undefined reference to", "multiple definition of"),
)
JAVAC = LineFormat(
    name="javac",
    # https://docs.oracle.com/en/java/javase/17/docs/specs/man/javac.html
    commands=("javac", "ant", "gradle", "gradlew"),
    pattern=(
        r"(?P<path>[^\s:][^:]*\.java):(?P<line>\d+): (?P<level>error|warning): "
        r"(?:\[(?P<rule>[\w-]+)\] )?(?P<message>.+)$"
    ),
    more=r" *\^$| {2}(?P<message>(?:symbol|location|required|found|reason): .+)$",
    marks=(".java:",),
)
MAVEN_COMPILER = LineFormat(
    name="maven-compiler",
    # https://maven.apache.org/plugins/maven-compiler-plugin/
    commands=("mvn", "mvnw"),
    pattern=(
        r"\[(?P<level>ERROR|WARNING)\] (?P<path>[^\s:]+\.\w+):\[(?P<line>\d+),(?P<column>\d+)\] "
        r"(?:error: )?(?P<message>.+)$"
    ),
    more=r"\[ERROR\] {3}(?P<message>(?:symbol|location): .+)$",
    marks=("COMPILATION ERROR",),
)
SHELLCHECK = LineFormat(
    name="shellcheck",
    # https://www.shellcheck.net/wiki/
    heading=r"In (?P<path>.+) line (?P<line>\d+):$",
    pattern=r"\s*\^[-^]* (?P<rule>SC\d+)(?: \((?P<level>\w+)\))?: (?P<message>.+)$",
    marks=("^-- SC", "^ SC"),
)
YAMLLINT = LineFormat(
    name="yamllint",
    # https://yamllint.readthedocs.io/en/stable/quickstart.html
    heading=r"(?P<path>[^\s:][^:]*\.\w+)$",
    pattern=(
        r" +(?P<line>\d+):(?P<column>\d+) +(?P<level>error|warning) +"
        r"(?P<message>\S.*?) +\((?P<rule>[\w-]+)\)$"
    ),
    marks=(".yaml\n ", ".yml\n "),
)

ROWS = (
    GOLANGCI_LINT,
    GO,
    GOFMT,
    RUSTC,
    RUSTFMT,
    CLANG,
    GCC,
    LD,
    JAVAC,
    MAVEN_COMPILER,
    SHELLCHECK,
    YAMLLINT,
)

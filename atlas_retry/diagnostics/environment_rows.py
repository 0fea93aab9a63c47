"""Messages of tools that something is missing around the code: no edit of the code installs it."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

from atlas_retry.diagnostics.values import NotInstalled
from atlas_retry.patterns import regex

_NPM = r"(?:npm (?:ERR!|error) )"
_MAVEN = r"(?:\[(?:ERROR|WARNING)\] )?(?:Rule \d+: )?\S*"
ROWS: tuple[tuple[str, ...], ...] = (
    # Go: gover/toolchain.go of its command
    (r"(?:go: )?\S+ requires go >= (\S+) \(running go ([\w.]+)",
     "it needs Go {0}, and Go {1} runs here"),
    (r"go: download go(\S+) for \S+: toolchain not available",
     "it needs Go {0}, which is not installed and cannot be downloaded"),
    # rustup, errors.rs
    (r"error: toolchain '([^']+)' is not installed",
     "the toolchain {0} is not installed", "rustup toolchain install {0}"),
    (r"error: '(?:cargo-)?(\w+)(?:\.exe)?' is not installed for the toolchain '([^']+)'",
     "{0} is not installed for the toolchain {1}", "rustup component add {0} --toolchain {1}"),
    # Cargo, main.rs and cargo_compile
    (r"error: no such (?:sub)?command: `([\w-]+)`",
     "cargo-{0} is not installed", "cargo install cargo-{0}"),
    (r"error: rustc (\S+) is not supported by the following package",
     "a package needs a newer Rust than {0}, which runs here", "rustup update"),
    (r"(?:error: )?package `[^`]+` cannot be built because it requires rustc (\S+) or newer",
     "it needs Rust {0}", "rustup update"),
    (r" +this version of Cargo is older than the `(\d+)` edition",
     "Cargo is older than the edition {0}, which the project uses", "rustup update"),
    (r"error: the `-Z` flag is only accepted on the nightly channel of Cargo",
     "it needs a nightly toolchain of Rust",
     "rustup toolchain install nightly && rustup override set nightly"),
    # npm, error-message.js; pnpm, package-is-installable; Yarn 1
    (_NPM + r"notsup Required: +(\{.+\})", "it needs other versions of Node.js or npm: {0}"),
    (r" ?ERR_PNPM_UNSUPPORTED_ENGINE +(.+)", "it needs another version of Node.js or pnpm: {0}"),
    (r" ?ERR_PNPM_BAD_PM_VERSION +This project is configured to use v?(\S+) of pnpm",
     "it needs pnpm {0}", "corepack enable"),
    (r'error .+: The engine "(\w+)" is incompatible .+ Expected version "([^"]+)"',
     "it needs {0} {1}"),
    # Next.js, Angular
    (r"You are using Node\.js ([\w.]*\w)\. For Next\.js, Node\.js version \"(\S+)\" is required",
     "it needs Node.js {1}, and {0} runs here"),
    (r"The Angular CLI requires a minimum Node\.js version of (.+?)\.?$", "it needs Node.js {0}"),
    ((r"(?:error|Internal Error:|Usage Error:) ?This project(?:'s| is) .*"
      r"(?:packageManager\": \"|configured to use )(\w+)"),
     "it needs {0}, by Corepack", "corepack enable"),
    # Gradle, its launcher, variants and toolchains
    (r"(?:> )?Gradle requires JVM (\d+) or later to run",
     "Gradle needs a JDK of version {0} or later"),
    ((r"\s*> Dependency requires at least JVM runtime version (\d+)\. "
      r"This build uses a Java (\d+)"),
     "it needs a JDK of version {0} or later, and Java {1} runs here"),
    (r"\s*(?:> )?Cannot find a Java installation .*matching.*languageVersion=(\d+)",
     "it needs a JDK of version {0}"),
    # javac, also by Maven and Gradle; the enforcer plugin; the start scripts
    ((r"(?:\[ERROR\] .*|Caused by: .*|.*> )?error: "
      r"(?:release version|invalid (?:source|target) release:) (\d+)"),
     "it needs a JDK of version {0}"),
    (_MAVEN + r"Detected (JDK|Maven) [Vv]ersion:? (.+ is not in the allowed range \S+)",
     "it needs another version of {0}: {1}"),
    ((r"(?:ERROR: JAVA_HOME is not set and no 'java'"
      r"|The JAVA_HOME environment variable is not)"), "no JDK was found (JAVA_HOME)"),
    (r"(?:ERROR: )?JAVA_HOME is set to an invalid directory: (\S+)", "JAVA_HOME is no JDK: {0}"),
    (r"(?:\[ERROR\] .*)?No compiler is provided in this environment",
     "a JRE runs here, and it needs a JDK", "sudo apt-get install default-jdk"),
    (r"(?:> )?SDK location not found\. Define a valid SDK location",
     "no SDK of Android was found (ANDROID_HOME)"),
    # tox, its environments of Python and their selection
    ((r"[\w.-]+: (?:failed with|skipped because) "
      r"could not find python interpreter.* (\S+)$"), "tox found no interpreter for {0}"),
    (r"ROOT: HandledError\| provided environments not found in configuration file",
     "tox has no environment of that name: see `tox list`"),
    # uv, uv-python; pip
    (r"error: No interpreter found for Python (.+) in ",
     "no Python {0} is installed", "uv python install"),
    (r"ERROR: Package '[^']+' requires a different Python: (\S+) not in '([^']+)'",
     "it needs Python {1}, and {0} runs here"),
    # compilers and linkers: rustc, cgo, distutils, CMake, Meson, node-gyp, xcrun; prost and bindgen
    (r"error: linker `(\S+)` not found", "the linker {0}, a C compiler, is not installed",
     "sudo apt-get install build-essential"),
    (r"(?:# )?.*\bcgo: C compiler \"(\S+)\" not found",
     "the C compiler {0}, which cgo needs, is not installed",
     "sudo apt-get install build-essential"),
    (r"\s*error: command '(?:\S*-)?(gcc|g\+\+|cc|clang)' failed: No such file or directory",
     "the C compiler {0} is not installed", "sudo apt-get install build-essential"),
    (r"  No CMAKE_(C|CXX)_COMPILER could be found", "no compiler of {0} is installed",
     "sudo apt-get install build-essential"),
    (r"CMake Error: CMake was unable to find a build program corresponding to \"([^\"]+)\"",
     "no program for {0} is installed", "sudo apt-get install build-essential"),
    (r"(?:\S+meson.build:\d+:\d+: )?ERROR: Unknown compiler\(s\): \[\['(\S+)'",
     "the compiler {0} is not installed", "sudo apt-get install build-essential"),
    (r".*\bgyp ERR! (?:find Python|stack Error: Could not find any Python)",
     "node-gyp found no Python", "sudo apt-get install python3"),
    (r".*\bgyp ERR! stack Error: not found: (make|gcc|g\+\+)",
     "{0} is not installed", "sudo apt-get install build-essential"),
    (r"xcrun: error: invalid active developer path",
     "the command line tools of Xcode are not installed", "xcode-select --install"),
    (r".*Could not find `protoc`", "protoc is not installed",
     "sudo apt-get install protobuf-compiler"),
    (r".*Unable to find libclang", "libclang is not installed",
     "sudo apt-get install libclang-dev"),
    (r"Error: pg_config executable not found", "pg_config is not installed",
     "sudo apt-get install libpq-dev"),
    # Docker, its client, Testcontainers, docker-py
    ((r"(?:ERROR: |docker: |error during connect: )?"
      r"(?:Cannot connect to the Docker daemon|failed to connect to the docker API)"
      r"|.*\bdocker\.sock: (?:connect: )?(?:no such file|connection refused)"),
     "the Docker daemon does not run here", "sudo systemctl start docker"),
    (r"(?:docker: )?permission denied while trying to connect to the (?:Docker daemon|docker API)",
     "this user may not use the Docker daemon", "sudo usermod -aG docker $USER"),
    (r"(?:.*: )?Could not find a (?:valid Docker environment|working container runtime strategy)",
     "the Docker daemon does not run here", "sudo systemctl start docker"),
    ((r"(?:docker\.errors\.DockerException: )?Error while fetching server API version: "
      r"\('Connection aborted"),
     "the Docker daemon does not run here", "sudo systemctl start docker"),
    # ld.so; a library of the project itself has no version in its name
    (r"(?:.*: )?(lib[^\s/:]+\.so(?:\.\d+)+): cannot open shared object file: No such file",
     "the shared library {0} is not installed"),
    # Playwright, its registry; Cypress, errors.js; Puppeteer
    (r".*BrowserType\.launch: Executable doesn't exist at ",
     "the browsers of Playwright are not installed", "playwright install"),
    (r"(?:.*: )?\W*Host system is missing dependencies to run browsers",
     "libraries that the browsers of Playwright need are not installed",
     "sudo npx playwright install-deps"),
    (r"(?:.*: )?Could not find (?:Chrome|Chromium|Firefox) \(ver\. ([\w.]+)\)",
     "the browser {0} of Puppeteer is not installed", "npx puppeteer browsers install"),
    ((r".*(?:browserType\.launch: )?Executable doesn't exist at "
      r"\S*(?:ms-playwright|chromium|firefox|webkit)"),
     "the browsers of Playwright are not installed", "npx playwright install"),
    (r"The cypress npm package is installed, but the Cypress binary is missing",
     "the Cypress binary is not installed", "npx cypress install"),
    # Bundler, RubyGems
    (r"Your Ruby version is (\S+), but your Gemfile specified (.+)",
     "it needs Ruby {1}, and {0} runs here"),
    (r"Run `bundle install` to install missing gems", "gems are not installed", "bundle install"),
    # Composer, platform_check.php; Mix; the .NET SDK
    (r"(?:.*: )?Your Composer dependencies require a PHP version \"([^\"]+)\"",
     "it needs PHP {0}"),
    ((r"\*\* \(Mix\) You're trying to run .+ on Elixir v(\S+) but .+ "
      r"it supports only Elixir (.+)"), "it needs Elixir {1}, and {0} runs here"),
    (r"Unchecked dependencies for environment (\w+):",
     "dependencies are not installed", "mix deps.get"),
    (r"A compatible .NET SDK was not found", "the .NET SDK of global.json is not installed"),
    (r"No \.NET SDKs were found", "no .NET SDK is installed"),
    (r" *It was not possible to find any installed (?:\.NET|dotnet)(?: Core)? SDKs",
     "no .NET SDK is installed"),
    (r"You must install(?: or update)? \.NET to run this application",
     "the .NET runtime of this application is not installed"),
    (r".*error NETSDK1045: The current .NET SDK does not support targeting (.+?)\.",
     "the .NET SDK is too old for {0}"),
)  # fmt: skip
"""What a tool says at the start of a line; what is missing; what installs it, if that depends on
nothing else. The groups fill the two texts in."""
ALONE: tuple[tuple[str, ...], ...] = (
    (r".*\b[Nn]o space left on device(?:$| \(os error \d+\)|, \w+|: ')",
     "no space is left on the disk", "df -h"),
    (r"(?:npm (?:ERR!|error) )?(?:code ENOSPC|nospc)", "no space is left on the disk", "df -h"),
    (r"You are using Node\.js ([\w.]*\w)\. Vite requires Node\.js version (.+?)\. Please",
     "it needs Node.js {1}, and {0} runs here"),
    (r".*(?:Failed to run .*pkg-config.*: No such file|The pkg-config command could not be found)",
     "pkg-config is not installed", "sudo apt-get install pkg-config"),
    ((r"(?:.*\bexit.*\\n)?Package '?(\S+?)'?"
      r"(?: was not found in the pkg-config search path|, required by .*, not found)"),
     "pkg-config does not find {0}", "sudo apt-get install {package}"),
    (r"\s*The system library `(\S+)` required by crate `\S+` was not found",
     "pkg-config does not find {0}", "sudo apt-get install {package}"),
    (r"(?:\S+:\d+:\d+: )?(?:ERROR: )?Dependency \"(\S+)\" not found, tried pkgconfig",
     "pkg-config does not find {0}", "sudo apt-get install {package}"),
    (r"  Could not find (?:directory of )?(OpenSSL) (?:installation|via)",
     "{0} is not installed", "sudo apt-get install libssl-dev"),
)  # fmt: skip
"""Like `ROWS`: what a build may survive, or a program may print for another reason. It counts only
if nothing else failed, and no test did."""

_HEADER = regex(
    r".*\bfatal error: '?(?P<asked>[\w./+-]+\.h(?:pp)?)'?"
    r"(?:: No such file or directory| file not found)"
)
_LIBRARY = regex(r".*\bld: cannot find (?P<asked>-l[\w.+-]+)")
PACKAGES: Mapping[str, str] = {
    "libssl-dev": "openssl/ -lssl -lcrypto openssl libssl libcrypto",
    "libffi-dev": "ffi.h -lffi libffi",
    "zlib1g-dev": "zlib.h -lz zlib",
    "libpq-dev": "-lpq libpq",
    "default-libmysqlclient-dev": "-lmysqlclient mysqlclient",
    "libsqlite3-dev": "sqlite3.h -lsqlite3 sqlite3",
    "libcurl4-openssl-dev": "curl/ -lcurl libcurl",
    "libxml2-dev": "-lxml2 libxml-2.0",
    "libxslt1-dev": "-lxslt -lexslt libxslt",
    "libjpeg-dev": "jpeglib.h -ljpeg libjpeg",
    "libpng-dev": "png.h -lpng libpng",
    "libfreetype-dev": "-lfreetype freetype2",
    "libreadline-dev": "readline/ -lreadline readline",
    "libbz2-dev": "bzlib.h -lbz2 bzip2",
    "liblzma-dev": "lzma.h -llzma liblzma",
    "libncurses-dev": "ncurses.h curses.h -lncurses ncurses",
    "libyaml-dev": "yaml.h -lyaml yaml-0.1",
    "libgmp-dev": "gmp.h -lgmp gmp",
    "libboost-all-dev": "boost/ -lboost_system",
    "libgtest-dev": "gtest/ gmock/ -lgtest gtest",
    "libx11-dev": "X11/ -lX11 x11",
    "libgl-dev": "GL/ -lGL gl",
    "libgtk-3-dev": "-lgtk-3 gtk+-3.0",
    "libglib2.0-dev": "-lglib-2.0 glib-2.0 gobject-2.0 gio-2.0",
    "libcairo2-dev": "-lcairo cairo",
    "libldap-dev": "ldap.h lber.h -lldap",
    "libsasl2-dev": "sasl/ -lsasl2 libsasl2",
    "libkrb5-dev": "gssapi/ krb5.h -lkrb5 krb5",
    "libicu-dev": "unicode/ -licuuc icu-uc icu-i18n",
    "libpcap-dev": "pcap.h pcap/ -lpcap libpcap",
    "libsystemd-dev": "systemd/ -lsystemd libsystemd",
    "libdbus-1-dev": "-ldbus-1 dbus-1",
    "libasound2-dev": "alsa/ -lasound alsa",
    "libudev-dev": "libudev.h -ludev libudev",
    "libusb-1.0-0-dev": "libusb-1.0/ -lusb-1.0 libusb-1.0",
    "unixodbc-dev": "sqlext.h -lodbc odbc",
    "libzmq3-dev": "zmq.h -lzmq libzmq",
    "libevent-dev": "event2/ -levent libevent",
    "libuv1-dev": "uv.h -luv libuv",
    "libsodium-dev": "sodium.h -lsodium libsodium",
    "libarchive-dev": "archive_entry.h -larchive libarchive",
    "libgit2-dev": "git2.h git2/ -lgit2 libgit2",
    "libpcre2-dev": "pcre2.h -lpcre2-8 libpcre2-8",
    "libseccomp-dev": "seccomp.h -lseccomp libseccomp",
    "libfontconfig-dev": "fontconfig/ -lfontconfig fontconfig",
}
"""Packages of Debian and Ubuntu with the headers, folders of headers, libraries and names of
pkg-config that people most often lack. Any other name is one that an edit may have to repair, and
so is a header that only an option finds: `-I/usr/include/postgresql` for that of libpq."""

_WORDS = regex(
    r"requires|nightly|not (?:installed|available|supported)|no such|older than|Required|ERR_PNPM"
    r"|engine|Java|JVM|JAVA|JDK|release|Detected|interpreter|not found|different Python|Executable"
    r"|binary|Ruby version|bundle|PHP version|Elixir|Unchecked|SDK|configured to use|packageManager"
    r"|No such file|could be found|(?:Could not|[Uu]nable to) find|compiler|xcrun|pg_config"
    r"|gyp ERR!|[Dd]ocker|pkg-config|Host system|\.NET|Node\.js|space left|ENOSPC|nospc"
    r"|shared object|cannot find -l|Package|fatal error"
)
"""A line without one of these is none of the rows'."""


Row = tuple[re.Pattern[str], str, str]
_ROWS, _ALONE = (
    [(regex(said), sentence, "".join(how)) for said, sentence, *how in rows]
    for rows in (ROWS, ALONE)
)


def telling(lines: Iterable[str]) -> list[str]:
    """The lines that may say that something is missing; the others need not be asked."""
    return [*filter(_WORDS.search, lines)]


def outdated(said: Iterable[str]) -> NotInstalled | None:
    """What the first of the telling lines says is missing, and how to install it."""
    return _missing(said, _ROWS)


def missing_alone(said: Iterable[str]) -> NotInstalled | None:
    """Like `outdated`, where nothing else failed."""
    return _missing(said, _ALONE)


def _missing(said: Iterable[str], rows: Sequence[Row]) -> NotInstalled | None:
    for line, (pattern, sentence, install) in product(said, rows):
        if match := pattern.match(line):
            groups = match.groups(default="")
            package = package_of(groups[0]) if groups else ""
            is_known = package or "{package}" not in install
            command = install.format(*groups, package=package) if is_known else ""
            text = f"{sentence.format(*groups)}: {command or 'install it'}"
            return NotInstalled(sentence=text, command=command or None)
    return None


def package_of(asked: str) -> str:
    """The package of Debian with a header, a library or a name of pkg-config; empty if unknown."""
    names = {asked, f"{asked.partition('/')[0]}/"}
    return next((p for p, has in PACKAGES.items() if not names.isdisjoint(has.split())), "")


def undeveloped(said: Iterable[str], holds: Callable[[str], bool]) -> NotInstalled | None:
    """The header or library of a known package that a compiler does not find, and nor do we."""
    for line in said:
        match = _HEADER.match(line) or _LIBRARY.match(line)
        package = package_of(match["asked"]) if match else ""
        if match and package and not holds(match["asked"]):
            command = f"sudo apt-get install {package}"
            text = f"{match['asked']} is not installed (Debian and Ubuntu: {package}): {command}"
            return NotInstalled(sentence=text, command=command)
    return None

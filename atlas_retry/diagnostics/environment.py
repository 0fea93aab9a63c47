"""Finds missing programs and packages, and other failures that the code did not cause."""

import re
import shlex
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

from atlas_retry.diagnostics.environment_rows import (
    missing_alone,
    outdated,
    telling,
    undeveloped,
)
from atlas_retry.diagnostics.values import Declared, Log, NotInstalled, ToolOutput
from atlas_retry.model import Diagnostic
from atlas_retry.patterns import regex

_KILLED: Final = (-9, 137)
"""Exit codes of a SIGKILL, usually for lack of memory."""
_RESOURCES: Final = regex(r"""(?x)
    No[ ]space[ ]left[ ]on[ ]device | \bENOSPC\b | Disk[ ]quota[ ]exceeded
    | JavaScript[ ]heap[ ]out[ ]of[ ]memory | Cannot[ ]allocate[ ]memory | \bENOMEM\b
    | Cannot[ ]connect[ ]to[ ]the[ ]Docker[ ]daemon
    | ^bwrap:[ ]
    | [Tt]oo[ ]many[ ]open[ ]files | \bEMFILE\b
    """)
_NETWORK: Final = regex(r"""(?x)
    [Cc]onnection[ ]?refused | \bECONNREFUSED\b | could[ ]not[ ]connect[ ]to[ ]server
    | Temporary[ ]failure[ ]in[ ]name[ ]resolution | Name[ ]or[ ]service[ ]not[ ]known
    | \bENOTFOUND\b | \bEAI_AGAIN\b | Could[ ]?n[o']t[ ]resolve[ ]host | Unknown[ ]host
    | Could[ ]not[ ]transfer[ ]artifact[ ]
    | dial[ ]tcp:[ ]lookup | Network[ ]is[ ]unreachable
    | \bphp_network_getaddresses:[ ]getaddrinfo  # composer breaks the line after it
    | Address[ ]already[ ]in[ ]use | \bEADDRINUSE\b
    """)
_DOWNLOADS: Final = regex(r"""(?x)^(?:
        npm[ ](?:ERR!|error)[ ](?:network|code[ ](?:ETIMEDOUT|ECONNREFUSED))
      | error:[ ]failed[ ]to[ ](?:download|fetch|get)[ ]
      | go:[ ].+:[ ]dial[ ]tcp
      | fatal:[ ]unable[ ]to[ ]access[ ]'
      | \[ERROR\][ ].*Could[ ]not[ ]transfer[ ]artifact[ ]
    )""")


def is_to_blame(output: ToolOutput, log: Log, errors: Sequence[Diagnostic]) -> bool:
    """Whether the environment caused the failure, not the code.

    All errors must indicate so: a single test may expect a refused connection.
    """
    if output.exit_code in _KILLED:
        return True
    if errors:
        return all(_is_outside(error.message) for error in errors)
    return any(_is_outside(line) or _DOWNLOADS.match(line) for line in log.lines)


def _is_outside(text: str) -> bool:
    return bool(_RESOURCES.search(text) or _NETWORK.search(text))


_NOT_FOUND: Final = regex(r"""(?x)
    ^(?:(?:/usr)?/bin/)?(?:ba|da|z|k)?sh:[ ](?:line[ ])?(?:\d{1,9}:[ ])?
        \S{1,200}:[ ](?:command[ ])?not[ ]found$
    | ^g?make(?:\[\d{1,3}\])?:[ ]\S{1,200}:[ ]No[ ]such[ ]file[ ]or[ ]directory$
    """)
"""Messages of shells and make about a missing program."""

_STATUS_127: Final = regex(r"""(?x)
    ^g?make(?:\[\d{1,3}\])?:[ ]\*\*\*[ ].{1,300}[ ]Error[ ]127$
    | ^npm[ ](?:ERR!|error)[ ]code[ ]127$
    | ^(?:\S{1,100}:|error:?|\s?ELIFECYCLE\s)[ ].{0,200}\bexit[ ](?:(?:code|status)[ ])?127\b
    """)
"""Messages of tools that a command was not found (exit code 127, POSIX, XCU 2.8.2)."""

_PROGRAM: Final = regex(r"""(?x)
    ^\S{1,100}:[ ]Exception[ ]running[ ]subprocess[ ]
        .{1,50}No[ ]such[ ]file[ ]or[ ]directory:[ ]'([^']{1,200})'  # tox
    | ^error:[ ]Failed[ ]to[ ]spawn:[ ]`?([^`\s]{1,200})  # uv
    | ^(?:bundler:[ ]command|Command)[ ]not[ ]found:[ ](\S{1,200})$  # poetry is the other one
    | ^(?:nox[ ]>[ ]|error[ ]|\s?ERR_PNPM_\w+\s{1,3}|\s{1,4}\u00d7[ ])?  # pre-commit has none
        (?:Program|Command|Executable)[ ]["`]?([^\s"`]{1,200})["`]?[ ]not[ ]found\.?$
    | ^\s?ERR_PNPM_\w+\s{1,3}Command[ ]failed[ ]with[ ]ENOENT:[ ](\S{1,200})
    | ^Could[ ]not[ ]open[ ]input[ ]file:[ ](?:\./)?(vendor/bin/\S{1,200})$  # php
    | ^npm[ ](?:ERR!|error)[ ]npx[ ]canceled[ ].*?\["([^"]{1,200})"
    | ^npm[ ](?:ERR!|error)[ ]404\s[^']{0,50}'([^']{1,200})'[ ](?:could[ ]not|is[ ]not)[ ]
    """)
"""Messages of tools that name a missing program."""

_PLUGINS_OPTION = regex(r"\S{1,100}: error: unrecognized arguments: (--?[a-z]+)")
_PLUGIN_OF_MYPY = regex(r"rror importing plugin \"[^\"]+\": No module named '(\w+)'")
_PLUGINS = {
    "--cov": "pytest-cov", "-n": "pytest-xdist", "--numprocesses": "pytest-xdist",
    "--timeout": "pytest-timeout", "--reruns": "pytest-rerunfailures", "--mypy": "pytest-mypy",
    "--benchmark": "pytest-benchmark", "--randomly": "pytest-randomly", "--ds": "pytest-django",
    "--asyncio": "pytest-asyncio", "--snapshot": "syrupy",
}  # fmt: skip
"""Plugins of pytest by the first word of an option that it knows only with them."""

_INTERPRETER = regex(
    r"^(?P<python>(?:/.{0,300}/|\S{0,300}/)?(?:python|pypy)[\d.]{0,8})"
    r": No module named '?(?P<name>\w+)'?$"
)
_STUBS = regex(r'^Library stubs not installed for "(?P<name>[^"]+)"')
_STUBS_HINT = regex(r'note: Hint: "(?P<line>[^"]* pip install [^"]+)"')

_PYTHON = regex(r"""(?x)
    (?:^|:[ ])No[ ]module[ ]named[ ]'(\w+)'
    | library[ ]stub[ ]for[ ]module[ ]named[ ]"(\w+)[".]
    | ^Unable[ ]to[ ]import[ ]'(\w+)[.']
    | ^Import[ ]"(\w+)(?:\.\w+)*"[ ]could[ ]not[ ]be[ ]resolved
    | (?:^|:[ ])Cannot[ ]resolve[ ]imported[ ]module[ ]`(\w+)
    """)
_NPM = regex(r"""(?x)
    (?: Cannot[ ]find[ ](?:module|package)
      | Failed[ ]to[ ]resolve[ ]import
      | Can't[ ]resolve
      | Could[ ]not[ ]resolve
      | declaration[ ]file[ ]for[ ]module
      | [Uu]nable[ ]to[ ]resolve[ ]path[ ]to[ ]module
      | couldn't[ ]find[ ]the[ ](?:plugin|config)
    )
    [ ]['"](@[\w.-]+/[\w.-]+|[\w-][\w.-]*)
    """)
_GEM = regex(
    r"cannot load such file -- ([\w-]+)"
    r"|^Could not find ([\w.-]+?)(?:-[\d.]+| )|(?:^|: )Could not find gem '([\w.-]+)"
)

DISTRIBUTIONS = {
    "attr": "attrs", "bs4": "beautifulsoup4", "crypto": "pycryptodome", "cv2": "opencv-python",
    "dateutil": "python-dateutil", "dns": "dnspython", "docx": "python-docx",
    "dotenv": "python-dotenv", "git": "gitpython", "jwt": "pyjwt", "magic": "python-magic",
    "openssl": "pyopenssl", "pil": "pillow", "psycopg2": "psycopg2-binary",
    "rest-framework": "djangorestframework", "serial": "pyserial", "skimage": "scikit-image",
    "sklearn": "scikit-learn", "yaml": "pyyaml", "zmq": "pyzmq",
}  # fmt: skip
"""Distributions on PyPI that do not have the name of the module that they bring, both in lower
case with hyphens."""


_OWN_MODULE = regex(r"(?:^|ModuleNotFoundError: )No module named '(\w+)'$", re.MULTILINE)
_TARGET = regex(
    r"^\s{0,20}= help: consider downloading the target with `(rustup target add (\S+))`$"
)
_UNSTABLE = "may not be used on the stable release channel"
_CONDITION = regex(r"\s{0,9}\d{1,7}\s{0,9}\|\s{0,9}#!\[cfg_attr\(")
_REFUSED = regex(r"[Cc]onnection ?refused|\bECONNREFUSED\b|could not connect to server")


class _Ecosystem(NamedTuple):
    pattern: re.Pattern[str]
    names: Callable[[str], tuple[str, ...]]
    """Names under which a module may be declared."""
    declared: Callable[[Declared], frozenset[str]]
    install: Callable[[Declared], str]


def _distributions(module: str) -> tuple[str, ...]:
    name = re.sub(r"[-_.]+", "-", module).lower()
    return (name, DISTRIBUTIONS.get(name, name))


_ECOSYSTEMS = (
    _Ecosystem(_PYTHON, _distributions, lambda d: d.python, lambda d: d.install_python),
    _Ecosystem(
        _NPM,
        lambda module: (module, f"@types/{module.removeprefix('@').replace('/', '__')}"),
        lambda d: d.npm,
        lambda d: d.install_npm,
    ),
    _Ecosystem(_GEM, lambda gem: (gem,), lambda d: d.gems, lambda _: "bundle install"),
)


def not_installed(
    output: ToolOutput, log: Log, errors: Sequence[Diagnostic], tools: frozenset[str]
) -> NotInstalled | None:
    """What is not installed and how to install it; None if nothing is missing.

    `tools` are programs that are never modules of a project.
    """
    failed = _Failed(output, log, errors, _texts(log, errors), telling(log.lines), tools)
    certain_first = (
        failed.stubs,
        failed.toolchain,
        failed.old_toolchain,
        failed.undeveloped,
        failed.undelivered,
        failed.own_package,
        failed.service,
    )
    for find in certain_first:
        if missing := find():
            return missing
    if any(error.test_id for error in errors):
        return None
    return failed.alone() or failed.program()


def missing_program(text: str) -> str | None:
    """The line of a shell about a missing program; None if there is none."""
    return next((line for line in text.splitlines() if _NOT_FOUND.match(line)), None)


def _get(program: str, declared: Declared) -> NotInstalled:
    name = program.partition("@")[0] or program
    command = None
    if name in declared.npm:
        command = declared.install_npm
    elif declared.python.intersection(_distributions(name)):
        command = declared.install_python or f"python -m pip install {name}"
    elif name in declared.gems:
        command = "bundle install"
    elif name.startswith("vendor/bin/"):
        command = "composer install"
    how = f" ({command})" if command else ""
    return NotInstalled(
        sentence=f"the command {program} was not found: install it{how}", command=command
    )


_CAUSED = "The above exception was the direct cause of the following exception"
"""Below an exception of Python that the code itself turned into another one (`raise ... from`)."""


def _texts(log: Log, errors: Sequence[Diagnostic]) -> Sequence[str]:
    if not errors:
        return log.lines
    messages = [error.message for error in errors]
    if any(error.test_id for error in errors):
        return messages
    lines = [*filter(str.strip, log.lines)]
    return messages + [above for above, line in pairwise(lines) if line.startswith(_CAUSED)]


class _Failed(NamedTuple):
    """A command that failed, and the errors that were read."""

    output: ToolOutput
    log: Log
    errors: Sequence[Diagnostic]
    texts: Sequence[str]
    """The messages of the errors and of what caused them; without any, every line."""
    telling: Sequence[str]
    """The lines that may say that something is missing around the code."""
    tools: frozenset[str]
    """Programs that are never modules of a project."""

    def stubs(self) -> NotInstalled | None:
        names = dict.fromkeys(m["name"] for e in self.errors if (m := _STUBS.match(e.message)))
        if not names:
            return None
        found = filter(None, map(_STUBS_HINT.search, self.log.lines))
        missing = f"the type stubs of {', '.join(names)} are not installed"
        command = " && ".join(dict.fromkeys(hint["line"] for hint in found)) or None
        return NotInstalled(
            sentence=f"{missing}: {command}" if command else missing, command=command
        )

    def toolchain(self) -> NotInstalled | None:
        """The target or the toolchain that Rust asks for."""
        for asked in filter(None, map(_TARGET.match, self.log.lines)):
            command, name = asked.groups()
            return NotInstalled(
                sentence=f"the target {name} is not installed: {command}", command=command
            )
        # a feature that the code always uses can be removed by an edit
        is_unstable = self.errors and all(_UNSTABLE in error.message for error in self.errors)
        if is_unstable and any(map(_CONDITION.match, self.log.lines)):
            return NotInstalled(sentence="these features need Rust's nightly toolchain")
        return None

    def old_toolchain(self) -> NotInstalled | None:
        """The toolchain that is missing or too old; some tests may print such words, not all."""
        tests = [error.message for error in self.errors if error.test_id]
        said = [outdated(telling(text.splitlines())) for text in tests] or [outdated(self.telling)]
        return said[0] if all(said) else None

    def undeveloped(self) -> NotInstalled | None:
        """The header or library that is not in the workspace either."""
        holds = self.output.endings
        return undeveloped(self.telling, lambda name: bool(holds(name.removeprefix("-l"))))

    def alone(self) -> NotInstalled | None:
        """What is missing if every error says so, or no error was read."""
        said = [missing_alone(telling(error.message.splitlines())) for error in self.errors]
        said = said or [missing_alone(self.telling)]
        return said[0] if all(said) else None

    def undelivered(self) -> NotInstalled | None:
        """The declared packages that are not installed."""
        for ecosystem in _ECOSYSTEMS:
            if asked := self._asked_for(ecosystem):
                declared = self.output.declared()
                how = ecosystem.install(declared) or f"python -m pip install {' '.join(asked)}"
                are = "is" if len(asked) == 1 else "are"
                missing_ones = (
                    f"{', '.join(asked)} {are} declared by the project, but not installed"
                )
                return NotInstalled(sentence=f"{missing_ones}: {how}", command=how)
        return None

    def _asked_for(self, ecosystem: _Ecosystem) -> list[str]:
        """The declared packages that have a module which a text misses."""
        found = chain.from_iterable(map(ecosystem.pattern.finditer, self.texts))
        modules = [*dict.fromkeys(next(filter(None, match.groups())) for match in found)]
        if not modules:  # what is declared is read only if something is missing
            return []
        own = self.output.project_names()
        names = chain.from_iterable(
            ecosystem.names(module) for module in modules if module not in own
        )
        declared = ecosystem.declared(self.output.declared())
        return [name for name in dict.fromkeys(names) if name in declared]

    def own_package(self) -> NotInstalled | None:
        """The project's own package if its files are there, and nothing fails but its import."""
        found = [match[1] for match in filter(None, map(_OWN_MODULE.search, self.texts))]
        is_mixed = len(found) < len(self.errors)
        if not found or is_mixed or not self.output.declared().own.issuperset(found):
            return None
        names = ", ".join(dict.fromkeys(found))
        how = self.output.declared().install_python or "python -m pip install -e ."
        return NotInstalled(
            sentence=f"{names}, the project's own package, is not installed: {how}", command=how
        )

    def service(self) -> NotInstalled | None:
        """The service of CI that nothing answers for here, if nothing fails but to reach it."""
        refused = [*filter(_REFUSED.search, self.texts)]
        if not refused or len(refused) < len(self.errors):
            return None
        asked = set(re.findall(r"(?:\bport |:)(\d{2,5})\b", "\n".join(refused)))
        for port, image in self.output.declared().services:
            if not asked or str(port) in asked:
                command = f"docker run -d -p {port}:{port} {image}"
                said = f"nothing listens on port {port}, where CI starts {image}: start it"
                return NotInstalled(sentence=f"{said} ({command})", command=command)
        return None

    def program(self) -> NotInstalled | None:
        line_of_shell = ""
        for line in self.log.lines:
            if match := _PROGRAM.match(line):
                return _get(next(filter(None, match.groups())), self.output.declared())
            if missing := self._module_asked(line) or self._plugin_asked(line):
                return missing
            if _NOT_FOUND.match(line):
                line_of_shell = line.strip()
            if _STATUS_127.match(line):
                said = line_of_shell or line.strip()
                return NotInstalled(sentence=f"a command was not found ({said}): install it")
        return None

    def _module_asked(self, line: str) -> NotInstalled | None:
        """The tool that an interpreter was asked to run by its module.

        It is one if the gate runs it so, or if it is known or declared.
        """
        match = _INTERPRETER.match(line)
        if not match or match["name"] in self.output.project_names():
            return None
        name = match["name"]
        is_tool = name in self.tools or f" -m {name} " in f"{self.output.command} "
        if not is_tool and self.output.declared().python.isdisjoint(_distributions(name)):
            return None
        command = f"{shlex.quote(match['python'])} -m pip install {name}"
        return NotInstalled(sentence=f"{name} is not installed: {command}", command=command)

    def _plugin_asked(self, line: str) -> NotInstalled | None:
        """The plugin that an option of pytest needs, or that the settings of mypy name."""
        option, setting = _PLUGINS_OPTION.match(line), _PLUGIN_OF_MYPY.search(line)
        plugin = _PLUGINS.get(option[1]) if option else setting and setting[1]
        if plugin is None or plugin in self.output.project_names():
            return None
        command = self.output.declared().install_python or f"python -m pip install {plugin}"
        return NotInstalled(sentence=f"{plugin} is not installed: {command}", command=command)

"""Remove control codes and secrets from untrusted text. Pure; knows no prompt, fence or file.

Everything here takes time linear in the length of the text: each pattern begins at a literal or
at a boundary, and every repetition is bounded or possessive.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache

from atlas_retry.patterns import regex, words

# --- control codes ---------------------------------------------------------------------------

# ECMA-48: CSI, the string sequences (OSC, DCS, SOS, PM, APC) up to their end or the line's, and
# the short ones.
ESCAPES = regex(r"""(?x)
      (?:\x1b\[|\x9b) [0-?]* [\x20-/]* [@-~]?
    | (?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]) [^\x07\x1b\x9c\n]* (?:\x07|\x1b\\|\x9c)?
    | \x1b [\x20-/]* [0-~]?
    """)
OVERSTRUCK = regex(r"[^\n\x08]\x08")
# What a reader cannot see: C0 but tab and newline, C1, line separators, soft hyphen, zero-width,
# bidi (Trojan Source, CVE-2021-42574), Hangul fillers, variation selectors, tag characters.
INVISIBLE = regex(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
SURROGATES = regex("[\ud800-\udfff]")


def is_plain(text: str) -> bool:
    """Whether a text is printable ASCII, tabs and line feeds only, like nearly all output."""
    return text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()


def clean(text: str) -> str:
    """The text as a terminal would show it, without invisible characters.

    Of a line overwritten by carriage returns, the last state stays. The number of lines stays.
    """
    if is_plain(text):
        return text
    text = ESCAPES.sub("", text.replace("\r\n", "\n"))
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return SURROGATES.sub("\ufffd", INVISIBLE.sub("", OVERSTRUCK.sub("", text)))


# --- secrets by their shape ------------------------------------------------------------------

PRIVATE_KEY = regex(r"""(?x)
    -----BEGIN[ ](?:[A-Z0-9]+[ ]){0,3}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
    (?:
      (?:(?!-----)[\s\S]){0,16384}-----END[ ][A-Z0-9 ]{0,40}-----
      # Cut off before its end: the lines that look like its body.
    | (?: (?:\\n|\n(?:[^\w\n]|E[ ]){0,20}) [A-Za-z0-9+/=]{16,80} [^\w\n\\]{0,20} (?=\n|\\n|\Z) )*
    )
    """)
URL_PASSWORD = regex(r"""(?x)
    (?<=://) (?P<user>[^\s:/@'"<>]{0,128}) :
    (?!\{|\$\{|\$[A-Z(]|<|%s|\*)  # a placeholder
    (?P<password>[^\s/@'"<>]{1,256}) (?=@[^\s@])
    """)
AUTHORIZATION = regex(r"""(?ix)
    (?P<kept>
      \bauthorization["']?\s{0,3}[:=]\s{0,3}["']?
      (?:(?:bearer|basic|token|digest)\s{1,3})?
    )
    (?!\[redacted) [^\s"',;{}<>$]{6,4096}
    """)
BEARER = regex(r"(?P<kept>\b[Bb]earer\s)(?=[^\s\"']{0,256}\d)[A-Za-z0-9._~+/=-]{16,4096}")
NETRC = regex(r"(?P<kept>\blogin\s{1,9}\S{1,256}\s{1,9}password\s{1,9})\S{1,256}")
JWT = regex(r"(?<![\w-])eyJ[\w-]{8,}+\.eyJ[\w-]{8,}+(?:\.[\w-]*+)?")

TOKENS = {
    "anthropic-key": r"sk-ant-[\w-]{20,}",
    "openai-key": r"sk-(?=[\w-]{0,256}[A-Z])(?=[\w-]{0,256}\d)[\w-]{20,}",
    "github-token": r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,}",
    "google-key": r"AIza[\w-]{35}(?![\w-])|ya29\.[\w-]{20,}|GOCSPX-[\w-]{28}",
    "npm-token": r"npm_[A-Za-z0-9]{36}(?!\w)",
    "huggingface-token": r"hf_[A-Za-z0-9]{30,}",
    "stripe-key": r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,}",
    "slack-token": r"xox[a-z]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{20,}",
    "docker-token": r"dckr_(?:pat|oat)_[\w-]{20,}",
    "digitalocean-token": r"do[opr]_v1_[a-f0-9]{64}",
    "shopify-token": r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    "vault-token": r"hv[sbr]\.[\w-]{24,}",
    "age-key": r"AGE-SECRET-KEY-1[0-9A-Z]{58}",
    "telegram-token": r"\d{8,10}:AA[\w-]{33}(?![\w-])",
}
"""Patterns by kind; no letter, digit, `_` or `-` may precede them."""

ANYWHERE = {
    "aws": r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}",
    "azure-storage-key": r"AccountKey=[A-Za-z0-9+/=]{88}",
    "discord": r"[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27}",
    "gitlab-token": r"gl(?:pat|dt|ft|soat|rt|cbt)-[\w-]{20,}|GR1348941[\w-]{20,}|glimt-[\w-]{25,}"
    r"|glptt-[\w-]{40,}|glagent-[\w-]{50,}|gloas-[\w-]{64,}",
    "mailchimp": r"[0-9a-z]{32}-us[0-9]{1,2}",
    "pypi-token": r"pypi-AgE(?:IcHlwaS5vcmc|NdGVzdC5weXBpLm9yZw)[\w-]{70,}",
    "sendgrid": r"SG\.[\w-]{22}\.[\w-]{43}",
    "slack": r"(?i:https://hooks\.slack\.com/services/T\w+/B\w+/\w+|xox[abposr]-(?:\d+-)+[a-z0-9]+)",
    "square-oauth": r"sq0csp-[\w\\-]{43}",
    "twilio": r"(?:AC|SK)[a-z0-9]{32}",
    "aws-secret": r"(?i:aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?)"
    r"['\"][0-9A-Za-z/+]{40}['\"]",
}
"""Patterns by kind that may follow anything. Their forms are those of detect-secrets 1.5, without
its entropy, keyword, Artifactory and IBM detectors, which also match hashes and ordinary code."""


LONG_TOKEN = regex(
    r"hooks\.slack\.com|AccountKey=|(?i:aws)|(?<![\w-])(?=[A-Za-z_-]{0,256}+\d)[\w-]{14,}"
)
"""Matches if any of ANYWHERE does, so that these are skipped for most output."""

Shapes = tuple[tuple[str, re.Pattern[str]], ...]


@cache
def _shapes(*, anywhere: bool) -> Shapes:
    """The patterns by kind: `anywhere` those that may follow anything, else those of a word."""
    if anywhere:
        return tuple((kind, re.compile(shape)) for kind, shape in ANYWHERE.items())
    own = ((kind, re.compile(rf"(?<![\w-])(?:{shape})")) for kind, shape in TOKENS.items())
    return (*own, ("jwt", JWT))


# --- secrets by the name in front of them ----------------------------------------------------

NAMED = regex(r"""(?ix)
    (?P<word>
      password|passwd|passphrase|pwd|secret|token
    | (?:api|access|private|secret|auth|client|signing|encryption|account)[_-]?key
    )
    (?P<sign> (?:\\?["'])? \s{0,3} (?::=|=>|=(?!=)|:(?!:)) \s{0,3} )
    (?:
      (?P<quote>\\?["']) (?P<quoted>[^\s"'\\]{6,4096}+) (?=(?P=quote))
    | (?P<bare>[^\s"'`,;&|<>(){}\[\]\\]{6,4096}+) (?![(\[,)])
    )
    """)
FLAG = regex(r"""(?x)
    (?P<kept> (?<!\S)--(?:[a-z]{1,20}-){0,3}(?:password|passwd|secret|token|api-key)[ ] )
    (?=\S{0,256}\d) [^\s"'<$-]\S{5,4096}
    """)
NO_VALUE = regex(r"[$%*{<]|\.{0,2}/|~|x{3}")
"""Placeholders and paths."""
SYMBOL = regex(r"[^\w./-]")
NAME_IN_CODE = regex(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
MIN_CHARS = 8
MIN_PASSWORD_CHARS = 6
MANY_DIGITS = 3


def _is_secret(match: re.Match[str]) -> bool:
    """Whether a named value looks like one in an environment, a log or YAML, not in code."""
    value: str = match["quoted"] or match["bare"]
    least = MIN_PASSWORD_CHARS if _is_password(match["word"]) else MIN_CHARS
    if len(value) < least or NO_VALUE.match(value):
        return False
    if match["quoted"] or not NAME_IN_CODE.fullmatch(value):
        is_mixed = any(map(str.isdigit, value)) or SYMBOL.search(value)
        return bool(is_mixed and any(map(str.isalpha, value)))
    return _is_no_name(match, value)


def _is_no_name(match: re.Match[str], value: str) -> bool:
    """Whether a value that could be a name in source code is a secret nevertheless."""
    word: str = match["word"]
    digits = sum(map(str.isdigit, value))
    if word.lower() in value.lower():
        return digits >= MANY_DIGITS
    if match["sign"] == "=":
        return digits > 0 or word.isupper()
    is_field = ":" in match["sign"] and value[0].islower()
    return digits >= (1 if is_field else MANY_DIGITS)


def _is_password(word: str) -> bool:
    return word.lower().startswith(("pass", "pwd"))


def _hidden_name(match: re.Match[str]) -> str:
    if not _is_secret(match):
        return match[0]
    word = match["word"].lower()
    kind = "password" if _is_password(word) else "key" if word.endswith("key") else word
    return f"{match['word']}{match['sign']}{match['quote'] or ''}[redacted:{kind}]"


# --- secrets by their value ------------------------------------------------------------------

SECRET_WORDS = words("""
    TOKEN TOKENS SECRET SECRETS CREDENTIAL CREDENTIALS KEY KEYS PASS PASSWORD PASSWD PASSPHRASE PWD
    APIKEY APIKEYS PAT AUTH COOKIE JWT DSN WEBHOOK
    """)
HARMLESS_ENDINGS = words(
    "ID NAME USER FILE PATH DIR SOCK HOST PORT URL URI TYPE MODE TTL COUNT LIMIT ENABLED"
)
MIN_PLAIN_WORD_CHARS = 16
"""Least length of plain words to hide; a password `postgres` would remove it from every log."""


def secret_values(environ: Mapping[str, str]) -> frozenset[str]:
    """Values of variables with secret-looking names, and passwords in URLs.

    Short values, paths and plain words are left out, because they would hide ordinary text.
    """
    values = set()
    for name, value in environ.items():
        parts = name.upper().split("_")
        is_secret = not SECRET_WORDS.isdisjoint(parts) and parts[-1] not in HARMLESS_ENDINGS
        if is_secret and parts != ["PWD"]:
            values.add(value)
        if "://" in value:
            values.update(match["password"] for match in URL_PASSWORD.finditer(value))
    return frozenset(filter(_can_be_hidden, values))


def _can_be_hidden(value: str) -> bool:
    """Whether a value can be hidden everywhere without hiding ordinary text."""
    plain_word = value.isalpha() and (value.islower() or value.isupper())
    wanted = MIN_PLAIN_WORD_CHARS if plain_word or value.isdigit() else MIN_CHARS
    return len(value) >= wanted and not re.fullmatch(r"(?:/[\w.@-]+)+/?", value)


# --- all of them -----------------------------------------------------------------------------


def redact(text: str, values: Iterable[str] = ()) -> str:
    """The text with every secret replaced by `[redacted:KIND]`; the number of lines stays.

    `values` are known secrets (see `secret_values`), of kind `env`; each line of a longer one
    counts. Others are found by their shape and by the name in front of them.
    """
    if not text:
        return ""
    lines = {line.strip() for line in "\n".join(values).splitlines()}
    for value in sorted(lines, key=len, reverse=True):
        text = text.replace(value, "[redacted:env]") if len(value) >= MIN_CHARS else text
    text = PRIVATE_KEY.sub(lambda m: "[redacted:private-key]" + "\n" * m[0].count("\n"), text)
    text = URL_PASSWORD.sub(r"\g<user>:[redacted:password]", text)
    for pattern in (AUTHORIZATION, BEARER, FLAG):
        text = pattern.sub(r"\g<kept>[redacted:token]", text)
    text = NETRC.sub(r"\g<kept>[redacted:password]", text)
    shapes = _shapes(anywhere=False)
    if LONG_TOKEN.search(text):
        shapes += _shapes(anywhere=True)
    for kind, shape in shapes:
        text = shape.sub(f"[redacted:{kind}]", text)
    return NAMED.sub(_hidden_name, text)

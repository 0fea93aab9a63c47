"""Which way a setting of a checker gets stricter; a table, no files."""

import re
from enum import StrEnum

from atlas_retry.guard.words import words

Key = tuple[str, ...]


class Direction(StrEnum):
    """How a value may move without proving less."""

    NEUTRAL = "neutral"
    MORE = "more"
    """Longer lists, higher numbers, true."""
    LESS = "less"
    """Shorter lists, lower numbers, false."""
    FIXED = "fixed"
    """Any change is one to answer for."""


_NEUTRAL = words(
    "description version title name author authors homepage license readme keywords"
    " show_missing skip_covered skip_empty precision color colors verbosity verbose cache_dir"
    " cache_location cache reporter reporters markers minversion $schema directory output"
    " output_format jobs parallel concurrency sort show_source show_error_codes"
    " show_column_numbers show_error_context pretty preview data_file known_first_party"
    " known_third_party force_sort_within_sections profile src src_paths mypy_path html_dir"
    " relative_files junit_family log_cli log_level log_file console_output_style target lib"
    " module moduleresolution jsx outdir rootdir baseurl declaration sourcemap esmoduleinterop"
    " resolvejsonmodule incremental composite isolatedmodules allowsyntheticdefaultimports"
    " types ordering case_sensitive combine_as_imports quote_style indent_style"
    " docstring_code_format skip_magic_trailing_comma line_ending fix fixable unfixable"
    " default_language_version ci minimum_pre_commit_version autofix_commit_msg"
    " autoupdate_schedule isolated_build deps requires globals env parser"
    " parseroptions sourcetype ecmaversion root asyncio_mode"
    " asyncio_default_fixture_loop_scope dynamic_context namespace_packages"
    " explicit_package_bases target_version python_version pythonversion pythonplatform"
    " release encoding groupid modelversion packaging url inceptionyear clearmocks resetmocks"
    " restoremocks mockreset unstubenvs unstubglobals errorondeprecated randomize displayname"
    " maxworkers shuffle faulthandler_timeout consider_namespace_packages task_tags"
    " tmp_path_retention_count tmp_path_retention_policy convention concurrent"
    " skip_install usedevelop use_develop skipsdist no_package edition passenv pass_env"
    " allowlist_externals reuseforks trimstacktrace"
)
_MORE = words(
    "select extend_select enable enabled plugins extends testpaths include includes files"
    " source packages python_files python_classes python_functions required_plugins"
    " load_plugins strict testmatch roots collectcoveragefrom pythonpath test_paths convention"
    " source_pkgs hooks stages types types_or paths branch xfail_strict all failonviolation"
    " failsonerror failonwarning failifnotests fail_on_error alwaysstrict"
    " forceconsistentcasinginfilenames useunknownincatchvariables warnings_as_errors warn"
    " warning_severity severity artifactid goal phase enable_error_code"
    " enable_incomplete_feature fail_on level active verbatimmodulesyntax extension forbidonly"
)
_LESS = words(
    "ignore extend_ignore disable disabled exclude extend_exclude force_exclude omit"
    " exclude_lines exclude_also exclude_dirs exclude_files norecursedirs collect_ignore"
    " coveragepathignorepatterns testpathignorepatterns watchpathignorepatterns"
    " modulepathignorepatterns ignorepatterns ignores skip skips skipped_rules"
    " partial_branches allow allowed_untyped allow_untyped per_file_ignores ignore_paths"
    " ignore_patterns skip_dirs skip_files exclude_rules exclude_dirs_use_default"
    " passwithnotests allowjs skiplibcheck skipdefaultlibcheck allowunreachablecode"
    " allowunusedlabels suppressimplicitanyindexerrors implicit_reexport disable_error_code"
    " ignored_modules ignored_classes generated_members line_length max_line_length complexity"
    " mccabe max_complexity testfailureignore skiptests skipitests maven.test.skip"
    " continue_on_error allow_failure ignore_errors ignore_missing_imports follow_imports bail"
    " timeout testtimeout hooktimeout test_timeout teardowntimeout slowtestthreshold"
    " retries retry reruns rerunfailingtestscount excludes excludedgroups excluded excluded_groups"
    " strict_optional_off no_site_packages silence_site_packages per_file_target_version"
    " printwidth min_complexity min_len min_occurrences min_confidence @errorlevel errorlevel"
)
_STRICT_TRUE = re.compile(
    r"^(disallow|ban|overflow_checks|debug_assertions|tests$|collectcoverage$|check|warn|strict|no_(implicit|unused|unchecked|fallthrough|property)|noimplicit"
    r"|nounused|nounchecked|nofallthrough|noproperty|exact|fail_under|failunder|min|minimum|fail_on"
    r"|fails?(on|if)(?!.*count)|report(?!er)|local_partial_types|extra_checks|enable_)"
)
_STRICT_FALSE = re.compile(r"^(allow|ignore|skip|exclude|disable|max|suppress|permit|tolerat)")
_THRESHOLD = re.compile(r"threshold|fail_?under|watermark|minimum_coverage", re.IGNORECASE)
_REVERSED = frozenset({"funlen", "dupl", "cyclop", "gocyclo", "gocognit", "nestif", "lll"})
"""Linters that find more the lower their limits are, whatever these are called."""
_SIZE = re.compile(r"^(Long|Large|Too|Complex|Nested|Cyclomatic|Cognitive)[A-Z]")
"""Rules of detekt and their like: what they limit is a size."""
_LIMIT = re.compile(r"^(lines|branches|functions|statements|global|project|patch)$")


def direction(key: Key) -> Direction:
    """The way a setting may move, by the last words of its key that say something."""
    parts = [re.sub(r"[-.]", "_", part).lower() for part in key]
    last = parts[-1] if parts else ""
    if _REVERSED & set(parts[:-1]) or (last == "threshold" and any(map(_SIZE.match, key))):
        return Direction.LESS
    if any(_THRESHOLD.search(word) for word in parts) or _LIMIT.match(last):
        return Direction.MORE
    for word in (last, last.replace("_", ""), *reversed(parts[:-1])):
        found = _of_word(word)
        if found is not None and (word == last or found is not Direction.NEUTRAL):
            return found
    return Direction.NEUTRAL if _SURROUNDINGS & set(parts[:-1]) else Direction.FIXED


_SURROUNDINGS = frozenset({"env", "paths", "transform", "globals", "isort"})
"""Sections that say where things are and what there is; no check hangs on them."""


def _of_word(word: str) -> Direction | None:
    if word in _NEUTRAL:
        return Direction.NEUTRAL
    if word in _LESS:
        return Direction.LESS
    if word in _MORE or _STRICT_TRUE.match(word):
        return Direction.MORE
    return Direction.LESS if _STRICT_FALSE.match(word) else None

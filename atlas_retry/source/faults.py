"""Faults to plant in sources, to see whether a check notices them. Reads and writes no file."""

from collections.abc import Iterator
from posixpath import splitext
from typing import TYPE_CHECKING

from msgspec import Struct

from atlas_retry.patterns import regex
from atlas_retry.source.languages import language_of, parse, text_of
from atlas_retry.source.scopes import Scope, ScopeKind, definitions, innermost
from atlas_retry.source.tokens import walk

if TYPE_CHECKING:
    from tree_sitter import Node

_SCRIPT = """
var  atlas_planted = require( "./atlas-planted-missing" ) ;;
function atlas_unused( a ){ var b = atlas_undefined ; if( b==null ) { debugger } }
"""
_TYPED = """
import  { atlasMissing } from "./atlas-planted-missing" ;;
export  const atlasPlanted : number = "text" ;;
function atlasUnused( a:any ){ var b = atlasUndefined ; if( b==null ) { debugger } }
"""
_C = "\nint  atlas_planted( void ){ int unused ; return atlas_undefined ; }\n"
PLANTED = {
    ".py": """
import  atlas_planted_missing
def atlas_planted( a :int )->str :
    try :
        unused = atlas_undefined
    except :
        return  a+1
atlas_wrong : int = "text"
""",
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), _SCRIPT),
    **dict.fromkeys((".ts", ".tsx", ".mts", ".cts"), _TYPED),
    ".go": '\nfunc  atlasPlanted( ) int { var unused int ; return "text" }\n',
    ".rs": '\nfn  atlas_planted( )->i32 { let unused = 1 ; "text" }\n',
    ".java": '\nclass AtlasPlanted{ int  wrong( ){ return "text" ; } }\n',
    ".kt": '\nfun  atlasPlanted( ):Int{ return "text" ; }\n',
    ".cs": '\nclass AtlasPlanted{ int  Wrong( ){ return "text" ; } }\n',
    **dict.fromkeys((".c", ".cc", ".cpp", ".cxx"), _C),
    ".rb": "\ndef  atlas_planted( a )\n unused=atlas_undefined\nend\n",
    ".php": '\nfunction  atlas_planted( ):int { $unused=1 ; return "text" ; }\n',
    **dict.fromkeys((".sh", ".bash"), "\natlas_planted( ) {\n  cd $1 && rm $atlas_undefined\n}\n"),
    **dict.fromkeys((".yaml", ".yml"), "\natlas_planted:   [ a,b ]\natlas_planted:  1\n"),
    ".md": "\n#No space\n\n\n\n* a\n   - b   \n",
    ".css": "\na{color:#ggg;;color:red}\n",
}
"""What is added to the end of a file, by suffix: an unknown name, a wrong type, a missing import
and odd spacing at once. It parses, so that linters and formatters report it and do not give up."""

_SWAPPED = {
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "//": "*", "+=": "-=", "-=": "+=",
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==", "===": "!==",
    "!==": "===", "and": "or", "or": "and", "&&": "||", "||": "&&",
    "in": "not in", "not in": "in", "is": "is not", "is not": "is",
}  # fmt: skip
"""Operators and what stands for each in a fault."""
_WORDS = {"true": "false", "false": "true", "True": "False", "False": "True"}
_OPERATION = regex(r"(binary|comparison|boolean|logical|relational|augmented|compound)")
_NUMBER = regex(r"\d+")
_TEXT = regex(r"string|template|concat")


class Fault(Struct, frozen=True, kw_only=True):
    """One fault, and the content of the file with it."""

    path: str
    line: int
    """1-based."""
    what: str
    """In words, such as `- for + in total`."""
    content: bytes


def planted(path: str, source: bytes) -> Fault | None:
    """A fault that linters, type checkers, compilers and formatters of the language report.

    None for a language without one.
    """
    text = PLANTED.get(splitext(path)[1].lower())
    if text is None or b"\0" in source:
        return None
    content = source.rstrip(b"\n") + b"\n" + text.encode()
    line = source.rstrip(b"\n").count(b"\n") + 3
    return Fault(path=path, line=line, what="an unknown name and a wrong type", content=content)


def mutants(path: str, source: bytes) -> tuple[tuple[Scope, Fault], ...]:
    """For each function, one fault: another operator, else another constant or truth value.

    The last operator of a function is the nearest to what it returns. Functions without any are
    left out.
    """
    tree = parse(language_of(path, source), source)
    if tree is None:
        return ()
    functions = [one for one in definitions(path, source) if one.kind is ScopeKind.FUNCTION]
    chosen: dict[Scope, Fault] = {}
    places = sorted(_places(tree.root_node), key=lambda place: text_of(place[0]) in _SWAPPED)
    for node, text in places:
        line = node.start_point.row + 1
        if function := innermost(functions, line):
            content = source[: node.start_byte] + text.encode() + source[node.end_byte :]
            what = f"{text} for {text_of(node)} in {function.qualified_name}"
            chosen[function] = Fault(path=path, line=line, what=what, content=content)
    return tuple(chosen.items())


def _places(root: "Node") -> Iterator[tuple["Node", str]]:
    """Every token that can be exchanged, in order, with the text for it."""
    for node in walk(root):
        text, around = text_of(node), node.parent or node
        is_text = any(_TEXT.search(one.type) for one in around.children)
        if text in _SWAPPED and _OPERATION.search(around.type) and not is_text:
            yield node, _SWAPPED[text]
        elif text in _WORDS and not node.child_count:
            yield node, _WORDS[text]
        elif node.is_named and _NUMBER.fullmatch(text) and not node.child_count:
            yield node, str(int(text) + 1)

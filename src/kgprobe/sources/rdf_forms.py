"""RDF files as they lie on a disk: which form a name stands for, and the bytes inside."""

import bz2
import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast
from xml.parsers import expat

#: Ending of a name -> the form's usual ending, by which Oxigraph knows it.
FORMS = {f".{form}": form for form in ("nt", "ttl", "rdf", "nq", "trig", "n3", "jsonld")}
FORMS |= {".owl": "rdf", ".xml": "rdf", ".txt": "nt"}
BOM = b"\xef\xbb\xbf"
#: errors of packed files that are cut or damaged
DAMAGED = (OSError, EOFError, zlib.error)
PACKED: dict[str, Callable[[str | Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open}
LEGAL = f"{', '.join(FORMS)}, each also packed as {' or '.join(PACKED)}"


def ending(path: str | Path) -> str:
    """The ending of a name without that of its packing, in small letters."""
    whole = Path(path)
    inner = Path(whole.stem) if whole.suffix.lower() in PACKED else whole
    return inner.suffix.lower()


def open_unpacked(path: str | Path) -> IO[bytes]:
    """The unpacked bytes of a file."""
    unpack: Callable[..., Any] = PACKED.get(Path(path).suffix.lower(), open)
    file = unpack(path, "rb")
    if file.peek(len(BOM)).startswith(BOM):
        file.read(len(BOM))
    return cast(IO[bytes], file)


def check_xml(path: str | Path) -> None:
    """Raise SyntaxError, with the line, for a file that is no whole XML: Oxigraph takes an end
    between two elements, or inside of a text, for the end of RDF/XML."""
    parser = expat.ParserCreate()
    with open_unpacked(path) as file:
        try:
            parser.ParseFile(file)
        except (expat.ExpatError, *DAMAGED) as error:
            problem = SyntaxError(str(error))
            problem.lineno = parser.CurrentLineNumber
            raise problem from error


def form(path: str | Path) -> str:
    """The form of a file of RDF, "" where its name tells none that is known.

    An .owl file is RDF/XML or, as often, Turtle.
    """
    kind = FORMS.get(ending(path), "")
    if kind != "rdf":
        return kind
    with open_unpacked(path) as file:
        begins = file.read(1000).lstrip()
    return "rdf" if begins.startswith(b"<?") or b"<rdf" in begins else "ttl"

"""Formats of RDF files, recognized by name, and reading of compressed files."""

import bz2
import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast
from xml.parsers import expat

#: File suffix -> the suffix by which Oxigraph knows the format.
FORMS = {f".{form}": form for form in ("nt", "ttl", "rdf", "nq", "trig", "n3", "jsonld")}
FORMS |= {".owl": "rdf", ".xml": "rdf", ".txt": "nt"}
BOM = b"\xef\xbb\xbf"
#: errors of compressed files that are truncated or damaged
DAMAGED = (OSError, EOFError, zlib.error)
PACKED: dict[str, Callable[[str | Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open}
LEGAL = f"{', '.join(FORMS)}, each also packed as {' or '.join(PACKED)}"


def ending(path: str | Path) -> str:
    """Return a file name's suffix in lower case, without the suffix of its compression."""
    whole = Path(path)
    inner = Path(whole.stem) if whole.suffix.lower() in PACKED else whole
    return inner.suffix.lower()


def open_unpacked(path: str | Path) -> IO[bytes]:
    """Open a file for reading its decompressed bytes, without a byte order mark."""
    unpack: Callable[..., Any] = PACKED.get(Path(path).suffix.lower(), open)
    file = unpack(path, "rb")
    if file.peek(len(BOM)).startswith(BOM):
        file.read(len(BOM))
    return cast(IO[bytes], file)


def check_xml(path: str | Path) -> None:
    """Raise SyntaxError, with the line, for a file that is not complete XML: Oxigraph accepts an
    end between two elements, or inside text, as the end of RDF/XML."""
    parser = expat.ParserCreate()
    with open_unpacked(path) as file:
        try:
            parser.ParseFile(file)
        except (expat.ExpatError, *DAMAGED) as error:
            problem = SyntaxError(str(error))
            problem.lineno = parser.CurrentLineNumber
            raise problem from error


def form(path: str | Path) -> str:
    """Return the RDF format of a file, or "" if its suffix is not known.

    An .owl file is RDF/XML or, as often, Turtle; the file's first bytes decide.
    """
    kind = FORMS.get(ending(path), "")
    if kind != "rdf":
        return kind
    with open_unpacked(path) as file:
        # XML in UTF-16 is reported as such, not as bad Turtle
        begins = file.read(1000).replace(b"\0", b"").strip(b"\xff\xfe \t\r\n")
    return "rdf" if begins.startswith(b"<?") or b"<rdf" in begins else "ttl"

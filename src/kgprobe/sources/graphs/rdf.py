"""RDF files: Turtle, N-Triples and RDF/XML, parsed by pyoxigraph."""

import re
from collections.abc import Iterator, Sequence
from itertools import count, islice, product
from pathlib import Path

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple, parse

from kgprobe.settings.sources import OwnGraph
from kgprobe.sources import rdf_forms
from kgprobe.sources.graphs.raw import GraphFileError, RawGraph, place, short
from kgprobe.sources.labels import one_line

OWL = "http://www.w3.org/2002/07/owl#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
#: pyoxigraph's messages about invalid IRIs, as opposed to other syntax errors.
BAD_IRI = re.compile(r"Invalid (?:IRI|host|character)|absolute IRI|An IRI path")
#: The text before an IRI that is the base, or stands for a prefix.
DECLARATION = re.compile(r"(?:^|[\s.])@?(?:base|prefix\s+\S*:)\s*$", re.I)
#: Formats in which a syntax error affects one line.
LINES = (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)
IMPORTS, ONTOLOGY = f"{OWL}imports", f"{OWL}Ontology"


def read(section: OwnGraph, languages: Sequence[str], graph: RawGraph) -> None:
    """Read statements between IRIs, and labels in the best of `languages`, untagged labels last.

    Blank nodes, bad IRIs and imports are noted as problems; text that cannot be parsed, and triples
    whose object is a triple (RDF 1.2), are recorded as unread.
    """
    tags = [*(one.lower() for one in languages), ""]
    order = {pair: rank for rank, pair in enumerate(product(section.roles.label, tags))}
    predicates = set(section.roles.label)
    imported: dict[str, str] = {}
    here: set[str] = set()
    n_blank, node = 0, ""
    for path in section.files:
        for triple in _triples(path, graph):
            subject, relation, value = triple.subject, triple.predicate.value, triple.object
            if not isinstance(subject, NamedNode) or isinstance(value, BlankNode):
                n_blank += 1
                if isinstance(subject, NamedNode):
                    node = node or f"{path}: {short(relation)} of {short(subject.value)}"
            elif isinstance(value, Literal):
                tag = (value.language or "").lower()
                label = one_line(value.value)
                if (relation, tag) in order and label:
                    graph.labels.append((subject.value, label, order[relation, tag], path, None))
                elif relation not in predicates:
                    graph.literals[relation] += 1
            elif isinstance(value, NamedNode):
                if relation == IMPORTS:
                    imported.setdefault(value.value, path)
                elif relation == TYPE and value.value == ONTOLOGY:
                    here.add(subject.value)
                else:
                    graph.statements.append((subject.value, relation, value.value, path, None))
            else:
                graph.unread.append(
                    f"{path}: {short(relation)} of {short(subject.value)} is a triple; expected an "
                    "IRI or a text"
                )
    if n_blank:
        graph.note("blank_node", node or f"{section.files[0]}: no subject has an IRI", n=n_blank)
    for name, path in sorted(imported.items()):
        if name not in here:
            graph.note("import", f"{path}: it imports {short(name)}, which no file of `files` is")


def _triples(path: str, graph: RawGraph) -> Iterator[Triple]:
    """Yield the triples of a file; errors are recorded in `graph`. Statements with a bad IRI are
    skipped. After a syntax error parsing continues only in N-Triples, where an error affects one
    line; in Turtle or RDF/XML it would report many follow-up errors."""
    with graph.going_on():
        try:
            form = RdfFormat.from_extension(rdf_forms.form(path))
            if form is None:
                legal = rdf_forms.LEGAL
                raise GraphFileError(f"{path}: not a known RDF file; valid endings: {legal}")
            if form == RdfFormat.RDF_XML:
                rdf_forms.check_xml(path)
            yield from _parse(path, form, graph)
        except SyntaxError as problem:
            message = f"{place(path, problem.lineno)}: {problem.msg}; expected {form}"
            raise GraphFileError(message) from problem
        except GraphFileError:
            raise
        except (*rdf_forms.DAMAGED, ValueError) as problem:
            raise GraphFileError(f"{path}: cannot be read: {problem}") from problem


def _parse(path: str, form: RdfFormat, graph: RawGraph) -> Iterator[Triple]:
    """Yield triples; note bad IRIs and bad lines of N-Triples, raise SyntaxError for the rest."""
    plain = Path(path.removesuffix(".gz").removesuffix(".bz2"))
    base, lines = f"file:///{plain.name}", list[bytes]()
    with rdf_forms.open_unpacked(path) as file:
        quads = parse(input=file, format=form, base_iri=base)
        for number in count():
            try:
                yield next(quads).triple
            except StopIteration:
                return
            except SyntaxError as problem:
                message = f"{place(path, problem.lineno)}: {problem.msg}"
                if BAD_IRI.search(problem.msg or "") and form == RdfFormat.RDF_XML:
                    yield from _with_bad_iris(path, base, number, graph)
                    return
                if BAD_IRI.search(problem.msg or ""):
                    if form not in LINES and not lines:
                        with rdf_forms.open_unpacked(path) as text:
                            lines = text.readlines()
                    if _is_declared(lines, problem):
                        raise GraphFileError(
                            f"{message}; correct this base or prefix: without it, names below it "
                            "would mean something else"
                        ) from problem
                    graph.note("bad_iri", message)
                # Oxigraph does not find the next line after bytes that are not UTF-8
                elif form in LINES and "UTF-8" not in (problem.msg or ""):
                    graph.unread.append(f"{message}; expected {form.name}")
                else:
                    raise


def _is_declared(lines: Sequence[bytes], problem: SyntaxError) -> bool:
    """Return whether the IRI of an error is in a declaration of a base or a prefix."""
    number, column = problem.lineno or 0, problem.offset or 1
    near = (one.decode("utf-8", "replace") for one in lines[max(0, number - 2) : number])
    *above, line = ("", *near)
    return bool(DECLARATION.search("".join(above) + line[: column - 1]))


def _with_bad_iris(path: str, base: str, start: int, graph: RawGraph) -> Iterator[Triple]:
    """Yield the triples of RDF/XML from number `start`; those with a bad IRI are noted and skipped.

    Oxigraph reports the first bad IRI, but from there on takes properties for nodes and loses other
    statements. So it reads the file again without checking IRIs.
    """
    with rdf_forms.open_unpacked(path) as file:
        quads = parse(input=file, format=RdfFormat.RDF_XML, base_iri=base, lenient=True)
        for quad in islice(quads, start, None):
            triple, value = quad.triple, quad.object
            end = value.datatype if isinstance(value, Literal) else value
            names = [
                one for one in (triple.subject, triple.predicate, end) if type(one) is NamedNode
            ]
            try:
                for name in names:
                    NamedNode(name.value)
            except ValueError as problem:
                graph.note("bad_iri", f"{path}: {short(name.value)}: {problem}")
            else:
                yield triple

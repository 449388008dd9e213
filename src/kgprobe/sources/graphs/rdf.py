"""RDF files: Turtle, N-Triples and RDF/XML, parsed by pyoxigraph."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple, parse

from kgprobe.settings import OwnGraph
from kgprobe.sources import rdf_forms
from kgprobe.sources.graphs import raw
from kgprobe.sources.graphs.flaws import Flaws, GraphFileError, short
from kgprobe.sources.graphs.raw import Raw

OWL = "http://www.w3.org/2002/07/owl#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
IMPORTS, ONTOLOGY = f"{OWL}imports", f"{OWL}Ontology"


def read(section: OwnGraph, languages: Sequence[str], flaws: Flaws) -> Raw:
    """Statements between IRIs, and labels in the best of `languages`, those without a tag last.

    Blank nodes and imports are noted as flaws. Raises GraphFileError where a file cannot be parsed.
    """
    order = {
        (name, tag): place * (len(languages) + 1) + at
        for place, name in enumerate(section.roles.label)
        for at, tag in enumerate((*(one.lower() for one in languages), ""))
    }
    predicates = set(section.roles.label)
    told, spoken, literals = [], [], Counter[str]()
    imported: dict[str, str] = {}
    here: set[str] = set()
    blank, node = 0, ""
    for path in section.files:
        for triple in _triples(path):
            subject, relation, value = triple.subject, triple.predicate.value, triple.object
            if not isinstance(subject, NamedNode) or isinstance(value, BlankNode):
                blank += 1
                if isinstance(subject, NamedNode):
                    node = node or f"{path}: {short(relation)} of {short(subject.value)}"
            elif isinstance(value, Literal):
                tag = (value.language or "").lower()
                if (relation, tag) in order and value.value.strip():
                    label = " ".join(value.value.split())
                    spoken.append((subject.value, label, order[relation, tag], path, None))
                elif relation not in predicates:
                    literals[relation] += 1
            elif isinstance(value, NamedNode):
                if relation == IMPORTS:
                    imported.setdefault(value.value, path)
                elif relation == TYPE and value.value == ONTOLOGY:
                    here.add(subject.value)
                else:
                    told.append((subject.value, relation, value.value, path, None))
    if blank:
        flaws.note("blank_node", node or f"{section.files[0]}: no subject has an IRI", blank)
    for name, path in sorted(imported.items()):
        if name not in here:
            flaws.note("import", f"{path}: it imports {short(name)}, which no file of `files` is")
    return Raw(raw.statements(told), raw.labels(spoken), literals=dict(literals))


def _triples(path: str) -> Iterator[Triple]:
    form = RdfFormat.from_extension(rdf_forms.form(path))
    if form is None:
        raise GraphFileError(f"{path}: no RDF that is known; legal endings: {rdf_forms.LEGAL}")
    plain = Path(path.removesuffix(".gz").removesuffix(".bz2"))
    with rdf_forms.opened(path) as file:
        try:
            for quad in parse(input=file, format=form, base_iri=f"file:///{plain.name}"):
                yield quad.triple
        except SyntaxError as problem:
            raise GraphFileError(
                f"{path}, line {problem.lineno}: {problem.msg}; expected {form.name}"
            ) from problem
        except (OSError, EOFError, ValueError) as problem:
            raise GraphFileError(f"{path}: cannot be read: {problem}") from problem

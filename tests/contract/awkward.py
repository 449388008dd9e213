"""A small graph of values that break parsers, escapes and sort orders, in both graph shapes."""

from tools.world.rdf import iri, literal

RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
DBO, DBR = "http://dbpedia.org/ontology/", "http://dbpedia.org/resource/"
WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
#: Names whose order differs by code point, by UTF-16 unit, by locale or without regard to case
NAMES = (
    "Zebra", "apple", "Apple", "Äpfel", "éclair", "Œuvre", "ﬁnal", "\U0001f600", "\U00010330",
    "中文", "한글", "a-b", "a_b", "a.b", "a%20b", "a'b", "a(b)", "a,b", "a+b", "a~b",
)  # fmt: skip
LABELS = (
    'a "quoted" word', "back\\slash", "line\nbreak", "tab\there", "carriage\rreturn",
    "\U0001f600 smile", "e\u0301 combining", "\u2028 separator", "<b>&amp;</b>", "'single'", "",
    " blank ", "\u007f delete", "x" * 3000, "ﬁ ligature", '?key > ""', "} LIMIT 1 #", "\\u0041",
    "中文",
)  # fmt: skip


def triples() -> str:
    """Return the graph as N-Triples."""
    lines = []
    kind = iri(f"{DBO}Awkward")
    lines.append((kind, iri(RDF_TYPE), iri("http://www.w3.org/2002/07/owl#Class")))
    lines.append((kind, iri(RDFS_LABEL), literal("awkward", "en")))
    for number, name in enumerate(NAMES):
        subject = iri(DBR + name)
        lines.append((subject, iri(RDF_TYPE), kind))
        lines.append((subject, iri(RDFS_LABEL), literal(LABELS[number % len(LABELS)], "en")))
    several = iri(f"{DBR}Several_labels")
    lines.append((several, iri(RDF_TYPE), kind))
    for label in LABELS:
        lines.append((several, iri(RDFS_LABEL), literal(label, "en")))
        lines.append((several, iri(RDFS_LABEL), literal(label, "de")))
    unnamed = iri(f"{DBR}No_label")
    lines.append((unnamed, iri(RDF_TYPE), kind))
    aliased = iri(f"{WD}Q999999999")
    alias = iri("http://www.w3.org/2004/02/skos/core#altLabel")
    lines += [(aliased, alias, literal(label, "en")) for label in LABELS if label]
    return "".join(f"{s} {p} {o} .\n" for s, p, o in lines)

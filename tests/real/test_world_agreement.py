"""The embedded knowledge graph against real data: identifiers, statements, properties, ontology.

The data is a sample, so a statement missing in it need not be false. A statement is attested if the
data has it (or its inverse), and contradicted if the data has another value where only one is
possible: for a relation that is single-valued in the data, or a fact of BEAR. At least 97 in 100 of
attested and contradicted statements must be attested; the same holds for everything else that can
be compared. Disagreements are printed.
"""

import csv
import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl
import pyoxigraph as ox
import pytest

from tools.world.build import World
from tools.world.dbpedia import DBO, DBR, PREFIXES
from tools.world.properties import RELATIONS, SUBJECT_TYPE

pytestmark = [pytest.mark.real, pytest.mark.nightly(needs="the real data in full")]

AGREEMENT = 0.97
ONTOLOGY = "dbpedia/dbo-snapshots_2026-07-22.ttl"


def _report(what: str, right: int, wrong: list[str], least: int) -> None:
    """Print agreement and disagreements; fail below the threshold or with too few cases."""
    total = right + len(wrong)
    print(f"{what}: {right} of {total} checkable agree ({right / max(total, 1):.2%})")
    for line in wrong:
        print(f"  {line}")
    assert total >= least, f"{what}: only {total} cases could be checked"
    assert right / total >= AGREEMENT, f"{what}: {wrong[:20]}"


def _unquoted(text: str) -> str:
    """Return the text of a KGTK value: 'text'@en, perhaps within CSV quotes."""
    text = next(csv.reader([text])) [0] if text.startswith('"') else text  # fmt: skip
    match = re.fullmatch(r"'(.*)'@\w+", text, re.DOTALL)
    return re.sub(r"\\(['\"])", r"\1", match[1]) if match else text


def _pairs(path: Path) -> Iterable[tuple[str, str]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in data.decode().rstrip("\n").split("\n")[1:]:
        key, _, value = line.partition("\t")
        yield key, _unquoted(value)


def test_labels_of_items(world: World, real_data: Path) -> None:
    known = dict(_pairs(real_data / "wikidata/entity_labels.tsv"))
    types = json.loads((real_data / "codex/types/types_en.json").read_text())
    known |= {id_: entry["label"] for id_, entry in types.items() if entry.get("label")}
    right, wrong = 0, []
    for row in world.entities.iter_rows(named=True):
        label = known.get(row["id"])
        if not label:
            continue
        names = {str(n).casefold() for n in (row["label"], row["key"], *row["aliases"])}
        if label.casefold().removeprefix("the ") in names | {n.removeprefix("the ") for n in names}:
            right += 1
        else:
            wrong.append(f"{row['id']} typed {row['key']!r}, data {label!r}")
    _report("labels of items", right, wrong, 500)


def _functional(triples: pl.DataFrame) -> set[str]:
    """Return relations for which at least 95 of 100 subjects in the data have one value."""
    values = triples.group_by("s", "p").len()
    single = values.group_by("p").agg((pl.col("len") == 1).mean().alias("single"), pl.len())
    return set(single.filter((pl.col("single") >= 0.95) & (pl.col("len") >= 50))["p"])


def _single_valued(folder: Path) -> set[tuple[str, str]]:
    """Return subject and relation of BEAR's facts, where a subject has exactly one value."""
    pairs = set()
    for path in folder.glob("P*.jsonl"):
        for line in path.read_text().splitlines():
            pairs.add((json.loads(line)["sub_id"], path.stem))
    return pairs


def test_statements(world: World, real_data: Path) -> None:
    triples = pl.read_parquet(real_data / "wikidata/triples.parquet").select("s", "p", "o")
    data = set(triples.iter_rows())
    with_value = {(s, p) for s, p, _ in data}
    functional, single = _functional(triples), _single_valued(real_data / "bear/BEAR-big")
    names = dict(world.entities.select("id", "key").iter_rows())
    counts: Counter[tuple[str, str]] = Counter()
    wrong = []
    columns = ("subject", "relation", "object", "origin")
    for s, p, o, origin in _asserted(world).select(columns).iter_rows():
        prop = world.properties[p]
        reverse = (p,) if prop.symmetric else prop.inverses
        if (s, p, o) in data or any((o, q, s) in data for q in reverse):
            counts[p, "attested"] += 1
        elif (s, p) in single or (p in functional and (s, p) in with_value):
            counts[p, "contradicted"] += 1
            wrong.append(f"{prop.label}: {names[s]} -> {names[o]} ({s} {p} {o}, {origin})")
        else:
            counts[p, "silent"] += 1
    for relation in sorted({p for p, _ in counts}, key=lambda p: -counts[p, "attested"]):
        shown = {k: counts[relation, k] for k in ("attested", "contradicted", "silent")}
        print(f"  {world.properties[relation].label} ({relation}): {shown}")
    right = sum(n for (_, kind), n in counts.items() if kind == "attested")
    _report("statements", right, sorted(wrong), 1000)


def test_no_statement_is_a_known_negative(world: World, real_data: Path) -> None:
    """CoDEx's negatives are plausible statements that annotators found to be false."""
    negatives = {
        tuple(line.split())
        for path in (real_data / "codex/triples").glob("*/*negatives.txt")
        for line in path.read_text().splitlines()
    }
    assert len(negatives) > 10_000
    said = _asserted(world).select("subject", "relation", "object")
    assert not negatives & set(said.iter_rows())


def _asserted(world: World) -> pl.DataFrame:
    kept = (pl.col("kind") == "item") & (pl.col("rank") != "deprecated")
    return world.statements.filter(kept)


def test_properties(world: World, real_data: Path) -> None:
    folder = real_data / "wikidata/properties"
    labels = dict(_pairs(folder / "labels.property.en.tsv.gz"))
    claims: dict[tuple[str, str], set[str]] = defaultdict(set)
    with gzip.open(folder / "claims.properties.tsv.gz", "rt") as lines:
        for line in lines:
            _, subject, relation, value, *_ = line.split("\t")
            claims[subject, relation].add(value.strip('"'))
    right, wrong = 0, []
    for prop in world.properties.values():
        cases = [("label", prop.label, {labels[prop.id]})] if prop.id in labels else []
        for relation, values in (
            ("P1647", prop.parents),
            ("P1696", prop.inverses),
            ("P1628", prop.equivalents),
        ):
            known = claims.get((prop.id, relation), set())
            cases += [(relation, value, known) for value in values if known]
        for name, value, known in cases:
            if value in known:
                right += 1
            else:
                wrong.append(f"{prop.id} {name}: typed {value!r}, data {sorted(known)}")
    _report("properties", right, wrong, 400)


def test_constraints(world: World, real_data: Path) -> None:
    path = real_data / "wikidata/properties/type_constraints_20210215.json"
    known: dict[tuple[str, bool], list[dict[str, object]]] = defaultdict(list)
    for entry in json.loads(path.read_text()):
        known[entry["property"], entry["constraint"] == "typeConstraint"].append(entry)
    words = {"instanceOf": "instance of", "subclass": "subclass of"}
    right, wrong = 0, []
    for prop in world.properties.values():
        for constraint in prop.constraints:
            entries = known.get((prop.id, constraint.type == SUBJECT_TYPE), [])
            if not entries:
                continue
            classes = {c for e in entries for c in e["classes"]}  # type: ignore[attr-defined]
            relations = {RELATIONS[words.get(str(e["relation"]), "either")] for e in entries}
            for class_ in constraint.classes:
                if class_ in classes:
                    right += 1
                else:
                    wrong.append(f"{prop.id} {constraint.type}: {class_} is not in the data")
            if constraint.relation is not None and constraint.relation not in relations:
                wrong.append(f"{prop.id}: relation {constraint.relation}, data {relations}")
    _report("constraints", right, wrong, 300)


Values = Callable[[str, str], set[str]]


@pytest.fixture(scope="module")
def ontology(real_data: Path) -> Values:
    """Map subject and predicate IRI to values in the pinned DBpedia ontology (English literals)."""
    store = ox.Store()
    store.bulk_load(path=str(real_data / ONTOLOGY), format=ox.RdfFormat.TURTLE)

    def values(subject: str, predicate: str) -> set[str]:
        pattern = store.quads_for_pattern(ox.NamedNode(subject), ox.NamedNode(predicate), None)
        objects = [quad.object for quad in pattern]
        return {o.value for o in objects if not isinstance(o, ox.Literal) or o.language == "en"}

    return values


def test_dbpedia_ontology(world: World, ontology: Values) -> None:
    rdfs, owl = PREFIXES["rdfs"], PREFIXES["owl"]
    kinds = {"class": "Class", "object": "ObjectProperty", "datatype": "DatatypeProperty"}
    right, wrong = 0, []
    for term in world.dbpedia.terms.values():
        is_class = term.kind == "class"
        parent = f"{rdfs}sub{'Class' if is_class else 'Property'}Of"
        other = f"{owl}equivalent{'Class' if is_class else 'Property'}"
        cases = [
            (f"{PREFIXES['rdf']}type", (owl + kinds[term.kind],)),
            (f"{rdfs}label", (term.label,)),
            (parent, term.parents),
            (other, term.equivalents),
            (f"{rdfs}domain", (term.domain,)),
            (f"{rdfs}range", (term.range,)),
        ]
        for predicate, typed in cases:
            known = ontology(term.iri, predicate)
            for value in typed:
                if value is None and not known:
                    continue
                if value in known:
                    right += 1
                else:
                    name = predicate.rsplit("#")[-1]
                    wrong.append(f"{term.iri} {name}: typed {value!r}, data {sorted(known)}")
    _report("DBpedia ontology", right, wrong, 1000)


def test_undeclared_parents_are_undeclared_in_dbpedia_too(world: World, ontology: Values) -> None:
    declared = {t.iri for t in world.dbpedia.terms.values()}
    outside = {
        parent
        for term in world.dbpedia.terms.values()
        for parent in term.parents
        if parent.startswith(DBO) and parent not in declared
    }
    assert outside
    owl_class = f"{PREFIXES['owl']}Class"
    assert not {p for p in outside if owl_class in ontology(p, f"{PREFIXES['rdf']}type")}


def test_instances(world: World, real_data: Path) -> None:
    types: dict[str, set[str]] = defaultdict(set)
    pattern = re.compile(rf"<({DBR}[^>]*)> <[^>]*#type> <({DBO}[^>]*)>")
    with gzip.open(real_data / "dbpedia/dbpedia_instances.nt.gz", "rt") as lines:
        for line in lines:
            match = pattern.match(line)
            if match:
                types[match[1]].add(match[2])
    right, wrong = 0, []
    for row in world.dbpedia.instances.iter_rows(named=True):
        known = types.get(row["resource"])
        if known is None:
            continue
        if row["class"] in known:
            right += 1
        else:
            wrong.append(f"{row['resource']}: typed {row['class']}, data {sorted(known)}")
    _report("instances of DBpedia classes", right, wrong, 10)

"""Pull the statements (contract STATEMENTS) of many relations, as completely as possible.

A relation's subjects are counted before they are listed. For a relation that is too large for an
endpoint, the alternatives in `large` are tried in order. Other failures of a relation are raised
after all other relations are done. COVERAGE records for every relation how it was obtained, how
many statements there are, and why others are missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from kgprobe.contracts import COVERAGE, TYPES
from kgprobe.job import log, progress
from kgprobe.schema import STATEMENTS
from kgprobe.settings.types import LANGUAGES
from kgprobe.sources.labels import one_line_of
from kgprobe.sources.sparql import answers
from kgprobe.sources.sparql.answers import BY_SIZE, SourceError, TooManyRows
from kgprobe.sources.sparql.endpoint import Endpoint
from kgprobe.sources.sparql.paging import PARTS, key
from kgprobe.sources.sparql.pull import pull

RANKS = {
    "http://wikiba.se/ontology#PreferredRank": "preferred",
    "http://wikiba.se/ontology#NormalRank": "normal",
}
ENTITY = "http://www.wikidata.org/entity/"


def statements(relation: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return STATEMENTS of a Wikidata property (`P36`) from its pulled rows.

    Truthy pulls have no rank and count as normal. If an entity has several labels or sitelink
    counts (from service replicas that lag behind), the first label by code point and the
    largest count are kept.
    """
    named = pl.col("rank").replace_strict(RANKS, return_dtype=pl.String)
    rank = named if "rank" in frame.columns else pl.lit("normal")
    ids = [pl.col(side).str.strip_prefix(ENTITY) for side in ("subject", "object")]
    labels = [one_line_of(f"{side}_label") for side in ("subject", "object")]
    links = pl.col("subject_sitelinks", "object_sitelinks").cast(pl.Int64)
    rows = frame.with_columns(*ids, *labels, links, rank=rank, object_kind=pl.lit("item"))
    rows = rows.with_columns(kg=pl.lit("wikidata"), relation=pl.lit(relation))
    single = rows.group_by(STATEMENTS.key).agg(
        pl.col("subject_label", "object_label").min(),
        pl.col("subject_sitelinks", "object_sitelinks").max(),
    )
    return single.select(list(STATEMENTS.columns)).sort(STATEMENTS.key)


#: How a relation was obtained: completely; well-known subjects only; from a dump; or not at all.
PULLED, SITELINKS, DUMP, LEFT_OUT = "pulled", "sitelinks", "dump", "left out"
#: Kinds of values in the order of COVERAGE.
KINDS = ("item", "unknown", "no value", "literal", "other")
NOTHING = pl.DataFrame(schema=dict(STATEMENTS.columns))


@dataclass
class Relations:
    """Pulls relations from one endpoint into `folder` (data/{source}/{snapshot}).

    `query` and `left_out` are the paths of facts.rq (or facts_truthy.rq) and left_out.rq, the
    latter "" for endpoints without statement nodes. `large` lists the alternatives for a relation
    that is too large: `sitelinks` asks for subjects with at least `least` sitelinks, `dump` takes
    it from `dumped` (STATEMENTS of a dump, by relation).
    """

    endpoint: Endpoint
    folder: Path
    query: str | Path
    left_out: str | Path = ""
    languages: Sequence[str] = LANGUAGES
    contact: str = ""
    large: Sequence[str] = (SITELINKS, DUMP)
    least: int = 0
    dumped: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    #: properties whose values are items; empty: all requested ones
    known: frozenset[str] = frozenset()

    def pull(self, wanted: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return (STATEMENTS, COVERAGE) of the relations, pulled in sequence.

        Raises SourceError if the endpoint fails, immediately if it rejects the query before any
        relation has returned rows; finished pulls stay in the folder.
        """
        frames, failed = [NOTHING], dict[str, SourceError]()
        rows: list[dict[str, object]] = []
        for relation in progress(wanted, desc="relations", unit="relation"):
            try:
                row, frame = self._relation(relation)
            except (answers.EndpointRefused, answers.RateLimited, answers.BudgetExhausted):
                raise
            except SourceError as error:
                if isinstance(error, answers.QueryRejected) and not any(map(len, frames)):
                    # all relations use the same query, so it would be rejected for each
                    raise
                log.warning("%s: %s", relation, error)
                failed[relation] = error
                continue
            frames.append(frame)
            rows.append({"relation": relation, "rows": frame.height, "redirected": None, **row})
            if row["way"] == LEFT_OUT:
                log.warning("%s is left out: %s", relation, row["reason"])
        if failed:
            relation, first = next(iter(failed.items()))
            raise SourceError(
                first.place,
                f"{len(failed)} of {len(wanted)} relations failed ({', '.join(failed)}); of "
                f"{relation} came: {first.came}",
                first.expected,
                "run again: only what is missing is requested",
            )
        coverage = pl.DataFrame(rows, schema=dict(COVERAGE.columns), orient="row")
        return pl.concat(frames).sort(STATEMENTS.key), coverage

    def _relation(self, relation: str) -> tuple[dict[str, object], pl.DataFrame]:
        """Return how a relation was obtained, as columns of COVERAGE, and its STATEMENTS."""
        if self.known and relation not in self.known:
            reason = "no property of the source whose values are items"
            return {"way": LEFT_OUT, "reason": reason}, NOTHING
        try:
            row, table = self._covered(PULLED, "", relation)
        except SourceError as error:
            # a temporary problem of the service must not reduce a relation that fits one page
            many = (error.rows or 0) > self.endpoint.policy.page_size
            if isinstance(error, TooManyRows) or (isinstance(error, BY_SIZE) and many):
                return self._large(relation, error)
            raise
        return row | self._count_statements(relation), table

    def _large(self, relation: str, error: SourceError) -> tuple[dict[str, object], pl.DataFrame]:
        reason = f"{error.came}; {error.expected}"
        for way in self.large:
            if way == SITELINKS and self.least:
                try:
                    return self._covered(SITELINKS, reason, relation, self.least)
                except (TooManyRows, *BY_SIZE) as still:
                    reason += f"; {still.came} with {self.least} sitelinks or more"
            elif way == DUMP and relation in self.dumped:
                return {"way": DUMP, "reason": reason}, self.dumped[relation]
        return {"way": LEFT_OUT, "reason": reason}, NOTHING

    def _count_statements(self, relation: str) -> dict[str, object]:
        """Count a relation's statements by kind of value, and the deprecated ones; {} if unknown.
        They are not part of the facts, so a service that cannot count them is no failure."""
        if not self.left_out:
            return {}
        given = self.endpoint, self.folder, {"property": relation}
        try:
            frame = pull(self.left_out, *given, contact=self.contact).frame()
        except SourceError as error:
            log.warning("%s: its statements by kind of value are not counted: %s", relation, error)
            return {}
        numbers = frame.with_columns(pl.col("n").cast(pl.Int64))
        deprecated = pl.col("rank").str.ends_with("#DeprecatedRank")
        sums = numbers.filter(~deprecated).group_by("kind").agg(pl.col("n").sum())
        by_kind = dict(sums.iter_rows())
        counted: dict[str, object] = {k.replace(" ", "_"): by_kind.get(k, 0) for k in KINDS}
        return counted | {"deprecated": int(numbers.filter(deprecated)["n"].sum())}

    def _covered(
        self, way: str, reason: str, relation: str, least: int = 0
    ) -> tuple[dict[str, object], pl.DataFrame]:
        """Pull a relation; return columns of COVERAGE and its STATEMENTS. The reason says which
        part of its graph the endpoint holds, if not all of it."""
        given = self.endpoint, self.folder, dict[str, str | int](property=relation, least=least)
        rows = pull(self.query, *given, languages=self.languages, contact=self.contact).frame()
        stated = rows.filter(pl.col("redirected").is_not_null())
        key = {"subject", "redirected", "rank"} & set(stated.columns)
        endpoint, graph = self.endpoint, self.endpoint.policy.graph
        part = (
            f"asked was {endpoint.id} ({endpoint.url}), which holds {graph}: of a relation that "
            "those have, it holds part of the subjects"
        )
        reason = "; ".join(filter(None, [reason, part if graph else ""]))
        row = {"way": way, "reason": reason, "redirected": stated.n_unique([*key])}
        return row, statements(relation, rows)


def relations_of(properties: pl.DataFrame) -> list[str]:
    """Return the ids of the item-valued properties of a pull, in numerical order."""
    items = properties.filter(pl.col("datatype").str.ends_with("#WikibaseItem"))
    ids = {iri.rsplit("/", 1)[-1] for iri in items["property"].to_list()}
    return sorted(ids, key=lambda relation: int(relation[1:]))


def pull_instances(
    classes: Sequence[str],
    endpoint: Endpoint,
    folder: Path,
    query: str | Path,
    most: int,
    *,
    languages: Sequence[str],
    contact: str = "",
) -> tuple[pl.DataFrame, dict[str, float]]:
    """Pull TYPES of the `classes`, at most about `most` instances of each; also return class ->
    proportion for classes of which only a part was taken.

    Of very large classes, for which a sample suffices, the part with the lowest hashes is taken:
    the same for every user and seed. A class has no more instances than its superclasses, so those
    of its instances that are in the part of a superclass are in its own part, too. If the instances
    of a class cannot be counted, pages are pulled until there are enough; then the same range of
    hashes is used for all partial classes. `query` is the path of instances.rq. Raises SourceError;
    finished pulls stay in the folder.
    """
    frames, keys, counted = dict[str, pl.DataFrame](), dict[str, int](), True
    for name in progress(sorted(set(classes)), desc="classes", unit="class"):
        given = endpoint, folder, {"class": name}
        snapshot = pull(query, *given, languages=languages, contact=contact, most=most)
        frames[name], record = snapshot.frame(), snapshot.meta
        n, stop = frames[name].height, record["pages"][-1]["stop"]
        total = record["count_before"]
        if total is None and n >= most:
            counted, stop = False, max(1, stop * most // n)
        elif total:  # pages from a run in which counting failed may extend further
            stop = min(stop, max(1, PARTS * most // total))
        if stop < PARTS:
            keys[name] = stop
    if not counted:
        keys = dict.fromkeys(keys, min(keys.values(), default=PARTS))
    for name, stop in keys.items():
        frames[name] = frames[name].filter([key(iri) < stop for iri in frames[name]["instance"]])
    if keys:
        log.info("%d classes in part, such as %s", len(keys), next(iter(keys)))
    table = pl.concat([pl.DataFrame(schema=dict(TYPES.columns)), *frames.values()]).unique()
    return table.sort(list(TYPES.key)), {name: stop / PARTS for name, stop in keys.items()}

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


def statements(pulls: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return STATEMENTS of Wikidata from one frame per property id (`P36`).

    Truthy pulls have no rank and count as normal. If an entity has several labels or sitelink
    counts (from service replicas that lag behind), the first label by code point and the
    largest count are kept.
    """
    frames = [_of_property(relation, frame) for relation, frame in sorted(pulls.items())]
    schema = dict(STATEMENTS.columns)
    table = pl.concat(frames) if frames else pl.DataFrame(schema=schema)
    key = list(STATEMENTS.key)
    links = pl.col("subject_sitelinks", "object_sitelinks").max()
    single = table.group_by(key).agg(pl.col("subject_label", "object_label").min(), links)
    return single.select(list(schema)).sort(key)


def _of_property(relation: str, frame: pl.DataFrame) -> pl.DataFrame:
    named = pl.col("rank").replace_strict(RANKS, return_dtype=pl.String)
    rank = named if "rank" in frame.columns else pl.lit("normal")
    ids = [pl.col(side).str.strip_prefix(ENTITY) for side in ("subject", "object")]
    labels = [one_line_of(f"{side}_label") for side in ("subject", "object")]
    links = pl.col("subject_sitelinks", "object_sitelinks").cast(pl.Int64)
    rows = frame.with_columns(*ids, *labels, links, rank=rank, object_kind=pl.lit("item"))
    rows = rows.with_columns(kg=pl.lit("wikidata"), relation=pl.lit(relation))
    return rows.select(list(STATEMENTS.columns))


#: How a relation was obtained: completely; well-known subjects only; from a dump; or not at all.
PULLED, SITELINKS, DUMP, LEFT_OUT = "pulled", "sitelinks", "dump", "left out"
#: Kinds of values in the order of COVERAGE.
KINDS = ("item", "unknown", "no value", "literal", "other")


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
        pulled: dict[str, pl.DataFrame] = {}
        others: list[pl.DataFrame] = []
        failed: dict[str, SourceError] = {}
        rows: list[dict[str, object]] = []
        for relation in progress(wanted, desc="relations", unit="relation"):
            try:
                row, frame = self._relation(relation)
            except (answers.EndpointRefused, answers.RateLimited, answers.BudgetExhausted):
                raise
            except SourceError as error:
                if isinstance(error, answers.QueryRejected) and not any(map(len, pulled.values())):
                    # all relations use the same query, so it would be rejected for each
                    raise
                log.warning("%s: %s", relation, error)
                failed[relation] = error
                continue
            rows.append({"relation": relation, "redirected": None, **row})
            if row["way"] == DUMP:
                others.append(frame)
            elif row["way"] != LEFT_OUT:
                pulled[relation] = frame
        if failed:
            relation, first = next(iter(failed.items()))
            raise SourceError(
                first.place,
                f"{len(failed)} of {len(wanted)} relations failed ({', '.join(failed)}); of "
                f"{relation} came: {first.came}",
                first.expected,
                "run again: only what is missing is requested",
            )
        table = pl.concat([statements(pulled), *others]).sort(list(STATEMENTS.key))
        # count statements, like for a dump: a response has a row for each label of an entity
        counts = dict(table.group_by("relation").len().rows())
        rows = [row | {"rows": counts.get(row["relation"], 0)} for row in rows]
        coverage = pl.DataFrame(rows, schema=dict(COVERAGE.columns), orient="row")
        for row in coverage.filter(pl.col("way") == LEFT_OUT).iter_rows(named=True):
            log.warning("%s is left out: %s", row["relation"], row["reason"])
        return table, coverage

    def _relation(self, relation: str) -> tuple[dict[str, object], pl.DataFrame]:
        """Return how a relation was obtained, as columns of COVERAGE, and its rows."""
        if self.known and relation not in self.known:
            reason = "no property of the source whose values are items"
            return {"way": LEFT_OUT, "reason": reason}, pl.DataFrame()
        try:
            whole = self._pull(relation, 0)
        except SourceError as error:
            # a temporary problem of the service must not reduce a relation that fits one page
            many = error.uncounted or (error.rows or 0) > self.endpoint.policy.page_size
            if isinstance(error, TooManyRows) or (isinstance(error, BY_SIZE) and many):
                return self._large(relation, error)
            raise
        return self._covered(PULLED, "", whole) | self._count_statements(relation), whole

    def _large(self, relation: str, error: SourceError) -> tuple[dict[str, object], pl.DataFrame]:
        reason = f"{error.came}; {error.expected}"
        for way in self.large:
            if way == SITELINKS and self.least:
                try:
                    frame = self._pull(relation, self.least)
                except SourceError as still:
                    if not isinstance(still, (TooManyRows, *BY_SIZE)):
                        raise
                    reason += f"; {still.came} with {self.least} sitelinks or more"
                    continue
                return self._covered(SITELINKS, reason, frame), frame
            if way == DUMP and relation in self.dumped:
                return {"way": DUMP, "reason": reason}, self.dumped[relation]
        return {"way": LEFT_OUT, "reason": reason}, pl.DataFrame()

    def _pull(self, relation: str, least: int) -> pl.DataFrame:
        """Pull the rows of the query."""
        parameters: dict[str, str | int] = {"property": relation, "least": least}
        given = self.endpoint, self.folder, parameters
        return pull(self.query, *given, languages=self.languages, contact=self.contact).frame()

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

    def _covered(self, way: str, reason: str, pulled: pl.DataFrame) -> dict[str, object]:
        """Return the columns of COVERAGE for pulled rows; the reason says which part of its graph
        the endpoint holds, if not all of it."""
        stated = pulled.filter(pl.col("redirected").is_not_null())
        key = {"subject", "redirected", "rank"} & set(stated.columns)
        endpoint, graph = self.endpoint, self.endpoint.policy.graph
        part = (
            f"asked was {endpoint.id} ({endpoint.url}), which holds {graph}: of a relation that "
            "those have, it holds part of the subjects"
        )
        reason = "; ".join(filter(None, [reason, part if graph else ""]))
        return {"way": way, "reason": reason, "redirected": stated.n_unique([*key])}


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

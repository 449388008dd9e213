"""The column contracts of every parquet file, and the only way to write or read one.

A file that has its final name is complete and obeys its contract: `write` checks columns, dtypes,
missing values and the key first, writes to a temporary name beside the target, and renames.
"""

import errno
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

METADATA_KEY = b"kgprobe"


class ContractError(ValueError):
    """A frame or file breaks its contract; the message names file, column and first bad row."""


@dataclass(frozen=True)
class Contract:
    """What one row is: columns with dtypes, the unique key, and the columns that may be null."""

    name: str
    columns: Mapping[str, pl.DataType | type[pl.DataType]]
    key: tuple[str, ...]
    nullable: frozenset[str] = field(default_factory=frozenset)
    #: whether a file without rows is a result (a dump file without triples) or a mistake
    may_be_empty: bool = False


def _contract(name: str, key: str, nullable: str = "", **columns: object) -> Contract:
    return Contract(name, columns, tuple(key.split()), frozenset(nullable.split()))  # type: ignore[arg-type]


#: A statement as pulled, with everything the benchmarks need to choose by.
STATEMENTS = _contract(
    "STATEMENTS",
    key="kg relation subject object object_kind rank",
    nullable="subject_label subject_sitelinks object_label object_sitelinks",
    kg=pl.String,
    relation=pl.String,
    subject=pl.String,
    subject_label=pl.String,
    subject_sitelinks=pl.Int64,
    object=pl.String,
    object_label=pl.String,
    object_sitelinks=pl.Int64,
    object_kind=pl.String,
    rank=pl.String,
)

#: A fact: one distinct best-rank statement.
FACTS = _contract(
    "FACTS",
    key="kg relation subject object",
    nullable="subject_label object_label",
    kg=pl.String,
    subject=pl.String,
    subject_label=pl.String,
    relation=pl.String,
    object=pl.String,
    object_label=pl.String,
)

#: One question about one fact. `answers` holds indices into the candidate set.
ITEMS = _contract(
    "ITEMS",
    key="item",
    item=pl.String,
    group=pl.String,
    role=pl.String,
    relation=pl.String,
    subject=pl.String,
    subject_id=pl.String,
    context=pl.String,
    candidates=pl.String,
    answers=pl.List(pl.Int32),
    row=pl.Int32,
    meta=pl.String,
)

#: One option of a candidate set.
CANDIDATES = _contract(
    "CANDIDATES",
    key="set index",
    set=pl.String,
    index=pl.Int32,
    id=pl.String,
    label=pl.String,
)

#: One template of a relation, with the placeholders [X] (subject) and [Y] (answer).
PROMPTS = _contract(
    "PROMPTS",
    key="prompt",
    prompt=pl.String,
    relation=pl.String,
    index=pl.Int32,
    text=pl.String,
    kind=pl.String,
)

#: Where a prompt comes from: the prompt that it was made of, and how.
WORDINGS = _contract(
    "WORDINGS",
    key="prompt",
    prompt=pl.String,
    relation=pl.String,
    kind=pl.String,
    parent=pl.String,
    change=pl.String,
)

#: Log-likelihoods (natural logarithm) of one option of one item under one template.
SCORES = _contract(
    "SCORES",
    key="item template candidate",
    nullable="continuation_sum",
    item=pl.String,
    template=pl.Int32,
    candidate=pl.Int32,
    sum=pl.Float64,
    count=pl.Int32,
    answer_sum=pl.Float64,
    answer_count=pl.Int32,
    continuation_sum=pl.Float64,
)

#: Rank range of a gold candidate (index `gold` of its set) under one configuration, and its score.
RANKS = _contract(
    "RANKS",
    key="item template masks pooling gold",
    item=pl.String,
    template=pl.Int32,
    masks=pl.String,
    pooling=pl.String,
    gold=pl.Int32,
    best=pl.Int32,
    worst=pl.Int32,
    score=pl.Float64,
)

#: The best candidates under one configuration, from place 1.
TOPS = _contract(
    "TOPS",
    key="item template masks pooling place",
    item=pl.String,
    template=pl.Int32,
    masks=pl.String,
    pooling=pl.String,
    place=pl.Int32,
    candidate=pl.Int32,
    score=pl.Float64,
)

#: A filling of a gap. Position 0 and up: the best single tokens there; position -1: whole fillings.
#: `masks` is the number of masks or tokens asked for, 0 where the text ran to the end of a phrase.
FILLS = _contract(
    "FILLS",
    key="item template masks position rank",
    nullable="logprob",
    item=pl.String,
    template=pl.Int32,
    masks=pl.Int32,
    position=pl.Int32,
    rank=pl.Int32,
    token=pl.Int64,
    text=pl.String,
    logprob=pl.Float64,
)

#: Rank range of every token of a gold at its mask, or after the gold's earlier tokens.
FILL_GOLDS = _contract(
    "FILL_GOLDS",
    key="item template gold position",
    item=pl.String,
    template=pl.Int32,
    gold=pl.Int32,
    position=pl.Int32,
    masks=pl.Int32,
    token=pl.Int64,
    best=pl.Int32,
    worst=pl.Int32,
    logprob=pl.Float64,
)
FILL_GOLDS = replace(FILL_GOLDS, may_be_empty=True)  # servers show no ranks

#: A multiple-choice question. `premise` is "" (memorising), out or EX (first premise written);
#: `source` the memorising question of the same row; `stem` the manual prompt with [MASK], or "".
CHOICES = _contract(
    "CHOICES",
    key="item",
    item=pl.String,
    task=pl.String,
    premise=pl.String,
    source=pl.String,
    question=pl.String,
    stem=pl.String,
    options=pl.List(pl.String),
    gold=pl.Int32,
    row=pl.Int32,
)

#: What was chosen in one way of answering; null where an answer cannot be read.
CHOSEN = _contract(
    "CHOSEN",
    key="item way",
    nullable="chosen margin",
    item=pl.String,
    way=pl.String,
    chosen=pl.Int32,
    rule=pl.String,
    text=pl.String,
    margin=pl.Float64,
)

#: The same for soft prompts, which have a training loss and a seed besides (template is always 0).
SOFT_RANKS = _contract(
    "SOFT_RANKS",
    key="item masks pooling loss seed gold",
    item=pl.String,
    template=pl.Int32,
    masks=pl.String,
    pooling=pl.String,
    loss=pl.String,
    seed=pl.Int32,
    gold=pl.Int32,
    best=pl.Int32,
    worst=pl.Int32,
    score=pl.Float64,
)

#: One epoch of the training of a soft prompt; `kept` marks the epoch whose vectors were kept.
SOFT_CURVES = _contract(
    "SOFT_CURVES",
    key="task masks pooling loss seed epoch",
    task=pl.String,
    masks=pl.String,
    pooling=pl.String,
    loss=pl.String,
    seed=pl.Int32,
    epoch=pl.Int32,
    training=pl.Float64,
    dev=pl.Float64,
    kept=pl.Boolean,
)

#: Rank range of a gold of a reasoning item: scheme is template + conjunction, p1 and p2 say which
#: premises are written, pair is the number of the pseudowords.
REASON_RANKS = _contract(
    "REASON_RANKS",
    key="item scheme p1 p2 pair gold",
    item=pl.String,
    scheme=pl.String,
    p1=pl.Boolean,
    p2=pl.Boolean,
    pair=pl.Int32,
    gold=pl.Int32,
    best=pl.Int32,
    worst=pl.Int32,
    score=pl.Float64,
)

#: Rank range of the second premise itself, asked with the same pseudowords, by template kind.
PREMISE_RANKS = _contract(
    "PREMISE_RANKS",
    key="item kind pair",
    item=pl.String,
    kind=pl.String,
    pair=pl.Int32,
    best=pl.Int32,
    worst=pl.Int32,
    score=pl.Float64,
)

#: Which facts the control models were taught.
TAUGHT = _contract(
    "TAUGHT",
    key="fact",
    fact=pl.String,
    relation=pl.String,
    subject=pl.String,
    object=pl.String,
    taught=pl.Boolean,
)

#: One printed number with its n and interval.
TABLE = _contract(
    "TABLE",
    key="paper table row column",
    nullable="low high published",
    paper=pl.String,
    table=pl.String,
    row=pl.String,
    column=pl.String,
    value=pl.Float64,
    n=pl.Int64,
    low=pl.Float64,
    high=pl.Float64,
    published=pl.Float64,
)

#: How many rows each step of a construction kept and dropped, and why.
FUNNEL = _contract(
    "FUNNEL",
    key="benchmark relation position",
    benchmark=pl.String,
    relation=pl.String,
    position=pl.Int32,
    step=pl.String,
    rows_in=pl.Int64,
    rows_out=pl.Int64,
    subjects=pl.Int64,
    answers=pl.Int64,
)


def check(frame: pl.DataFrame, contract: Contract, path: str | Path = "(in memory)") -> None:
    """Raise ContractError unless `frame` obeys `contract` (columns, dtypes, nulls, rows, key)."""
    where = f"{path} ({contract.name})"
    expected = list(contract.columns)
    if set(frame.columns) != set(expected):
        missing = [c for c in expected if c not in frame.columns]
        surplus = [c for c in frame.columns if c not in expected]
        raise ContractError(f"{where}: missing columns {missing}, surplus columns {surplus}")
    for column, dtype in contract.columns.items():
        if frame.schema[column] != dtype:
            raise ContractError(
                f"{where}: column '{column}' is {frame.schema[column]}, expected {dtype}"
            )
    if frame.height == 0 and not contract.may_be_empty:
        raise ContractError(f"{where}: no rows; at least one is expected")
    for column in expected:
        if column not in contract.nullable and frame[column].null_count():
            row = frame.with_row_index("_row").filter(pl.col(column).is_null()).row(0, named=True)
            raise ContractError(f"{where}: column '{column}' is null in row {_shown(row)}")
        if frame.schema[column].is_float() and frame[column].is_nan().any():
            row = frame.with_row_index("_row").filter(pl.col(column).is_nan()).row(0, named=True)
            raise ContractError(f"{where}: column '{column}' is NaN in row {_shown(row)}")
    repeated = frame.select(contract.key).is_duplicated()
    if repeated.any():
        row = frame.with_row_index("_row").filter(repeated).row(0, named=True)
        raise ContractError(
            f"{where}: key {contract.key} is not unique ({int(repeated.sum())} rows), "
            f"first {_shown(row)}"
        )


def write(
    frame: pl.DataFrame,
    contract: Contract,
    path: str | Path,
    provenance: Mapping[str, object] | None = None,
) -> None:
    """Check `frame`, sort it by the contract's key and write it as parquet at `path`.

    `provenance` (JSON values) goes into the file's metadata. It must not hold times or thread
    counts, because two runs with the same inputs give the same bytes.
    """
    check(frame, contract, path)
    frame = frame.select(list(contract.columns)).sort(list(contract.key), maintain_order=True)
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    metadata = json.dumps(
        {"contract": contract.name, **(provenance or {})}, sort_keys=True, ensure_ascii=True
    )
    table = table.replace_schema_metadata({METADATA_KEY: metadata.encode()})
    with atomic(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", row_group_size=1 << 17)


def read(path: str | Path, contract: Contract) -> pl.DataFrame:
    """Read the parquet file at `path` and check that it obeys `contract`."""
    if not Path(path).is_file():
        raise ContractError(f"{path} ({contract.name}): no such file")
    try:
        frame = pl.read_parquet(path, columns=None)
    except pl.exceptions.PolarsError as error:
        raise ContractError(
            f"{path} ({contract.name}): not a readable parquet file: {error}"
        ) from error
    check(frame, contract, path)
    return frame.select(list(contract.columns))


def provenance(path: str | Path) -> dict[str, object]:
    """The provenance that `write` stored in the metadata of the parquet file at `path`."""
    metadata = pq.read_schema(path).metadata or {}
    return dict(json.loads(metadata.get(METADATA_KEY, b"{}")))


class atomic:  # noqa: N801  (used like a function)
    """`with atomic(path) as temporary:` the file appears at `path` whole or not at all."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")

    def __enter__(self) -> Path:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self.temporary

    def __exit__(self, kind: object, error: object, *_: object) -> None:
        if kind is None:
            os.replace(self.temporary, self.path)
            return
        self.temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            free = shutil.disk_usage(self.path.parent).free
            raise OSError(
                errno.ENOSPC,
                f"No space left on device ({free:,} bytes are free now); make room and run again, "
                "finished files stay",
                str(self.path),
            ) from error


def _shown(row: Mapping[str, object]) -> str:
    index = row.get("_row")
    values = ", ".join(f"{k}={v!r}" for k, v in row.items() if k != "_row")
    return f"{index}: {values[:300]}"

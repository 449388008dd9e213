"""Which money a country had when: the dated statements of the embedded world.

Unicode's CLDR says of every territory which currencies were legal tender in it, from which day to
which; the package `babel` carries it. Of the world's own tables codes.tsv says which of its
entities CLDR's codes mean. What CLDR knows beyond the typed statements comes in as Wikidata has it:
past and further currencies beside the typed one, which is preferred.
"""

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from babel.numbers import get_territory_currencies

from kgprobe.sources.dates import OPEN, Period
from kgprobe.sources.world.facts import Statement
from kgprobe.sources.world.tables import Report, Row, read_table

CURRENCY = "P38"
#: Letters of a territory's code; those of a currency are three.
TERRITORY = 2


def read_codes(path: Path, items: Mapping[str, str], report: Report) -> dict[str, Row]:
    """CLDR's codes, and the row of codes.tsv that names the entity of each; none without it."""
    found: dict[str, Row] = {}
    for row in read_table(path, ("code", "entity"), report) if path.is_file() else ():
        code, entity = row.text("code"), row.text("entity")
        if entity not in items:
            report.unknown(row, "entity", entity, items, "the key of an entity")
        elif code in found:
            report.add(row, "code", code, f"already defined on line {found[code].line}")
        else:
            found[code] = row
    return found


def dated(
    typed: Iterable[Statement], codes: Mapping[str, Row], items: Mapping[str, str]
) -> list[Statement]:
    """The typed statements with CLDR's periods, and behind them the statements that it adds.

    A currency that has no entity in `codes` is left out, and so is all that CLDR knows of a country
    without a typed one: its past money would be its best. Where something is added, typed
    currencies of normal rank become preferred, unless one is already.
    """
    statements = list(typed)
    place = {
        (one.subject, one.object): at
        for at, one in enumerate(statements)
        if one.relation == CURRENCY and one.kind == "item"
    }
    for code, row in sorted(codes.items()):
        if len(code) != TERRITORY:
            continue
        subject, added = items[row.text("entity")], False
        own = [at for (of, _), at in place.items() if of == subject]
        if not own:
            continue
        for name, periods in _periods(code, codes).items():
            key = subject, items[name]
            if key in place:
                at = place[key]
                statements[at] = replace(statements[at], periods=periods)
            else:
                rest = ("item", "normal", "cldr", name, row, periods)
                statements.append(Statement(subject, CURRENCY, items[name], *rest))
                added = True
        if added and not any(statements[at].rank == "preferred" for at in own):
            for at in own:
                if statements[at].rank == "normal":
                    statements[at] = replace(statements[at], rank="preferred")
    return statements


def _periods(territory: str, codes: Mapping[str, Row]) -> dict[str, tuple[Period, ...]]:
    """Key of a currency -> when it was legal tender, in order."""
    found: defaultdict[str, set[Period]] = defaultdict(set)
    for one in get_territory_currencies(
        territory, datetime.date.min, datetime.date.max, tender=True, include_details=True
    ):
        if one["currency"] in codes:
            name = codes[one["currency"]].text("entity")
            found[name].add((_date(one["from"]), _date(one["to"])))
    return {name: tuple(sorted(found[name])) for name in sorted(found)}


def _date(day: datetime.date | None) -> str:
    return day.isoformat() if day else OPEN

"""The services of a replay, their behavior, and their data.

with world(Path("../shared/data"), folder) as proxy:
    ...
"""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.contract import virtuoso
from tests.contract.oxigraph import local_endpoint
from tests.replay import trex, wikidata
from tests.replay.downloads import Figshare, GitHub
from tests.replay.endpoints import Engine, collated
from tests.replay.proxy import Proxy


@dataclass(frozen=True)
class Behavior:
    """One line of the table of sources."""

    source: str
    does: str
    documented: str
    client: str
    test: str


WDQS_MANUAL = "https://www.mediawiki.org/wiki/Wikidata_Query_Service/User_Manual#Query_limits"
VIRTUOSO = "https://docs.openlinksw.com/virtuoso/anytimequeries/"
SERVICES = [
    Behavior(
        "github.com, codeload.github.com",
        "an archive of a commit is a redirect to another host, which sends chunks without a length",
        "https://docs.github.com/en/repositories/working-with-files/using-files/"
        "downloading-source-code-archives",
        "follows the redirect over https alone; each file that is read is checked against the "
        "commit's tree",
        "tests/replay/test_services.py::test_archives_come_by_a_redirect_in_chunks",
    ),
    Behavior(
        "figshare.com",
        "ndownloader links answer programs with 202 and an empty body from a firewall",
        "seen; https://docs.aws.amazon.com/waf/latest/developerguide/waf-captcha-and-challenge.html",
        "asks the API's address; an answer that is no archive is named and not kept",
        "tests/replay/test_services.py::test_the_firewall_s_page_is_no_archive",
    ),
    Behavior(
        "api.figshare.com, the object store",
        "a redirect to signed addresses of a store that knows ranges; connections break off",
        "https://docs.figshare.com/#file_download",
        "goes on from where it broke off, if the file is still the same",
        "tests/replay/test_services.py::test_a_download_goes_on_where_it_broke_off",
    ),
    Behavior(
        "query.wikidata.org",
        "403 (also 429, or 200 with text) without a contact in the User-Agent; 429 with "
        "Retry-After; 60 s a query, then error text behind a begun body or status 500 with it; 502 "
        "of the proxies before it; merged entities are owl:sameAs their new ids; no scholarly "
        "articles since 2025",
        WDQS_MANUAL,
        "a contact, one request at a time, waits as long as asked; a page is whole when its own "
        "count says so; a time-out makes pages smaller and ends in the declared way out; redirects "
        "are followed; coverage names the graph that was asked",
        "tests/replay/test_services.py::test_wikidata_in_pieces_and_whole",
    ),
    Behavior(
        "qlever.dev",
        "rows in the order of a collation that ignores punctuation; a time-out is status 429",
        "https://github.com/ad-freiburg/qlever/wiki/Settings-for-text-collation",
        "assumes no order; reads what a 429 says before it waits",
        "tests/replay/test_services.py::test_another_order_is_no_other_answer",
    ),
    Behavior(
        "dbpedia.org",
        "Virtuoso: 10,000 rows an answer, partial results with 200 and X-SQL-State, newer ones 206",
        VIRTUOSO,
        "small pages; a partial answer is asked for again, in smaller pages",
        "tests/replay/test_services.py::test_dbpedia_in_pieces_and_whole",
    ),
]
#: Statements of relations that no excerpt holds: P17 had 12.8 million in 2020.
SIZES = {"P17": 12_800_000}
TREX_FILE = "8760241"


@contextlib.contextmanager
def world(data: Path, folder: Path, documents: int = trex.DOCUMENTS) -> Iterator[Proxy]:
    """Yield the proxy for all services; `data` holds real data, `folder` data derived from it."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    statements, archive = folder / "wikidata.nt", folder / "TREx.zip"
    if not statements.is_file():
        wikidata.render(data / "wikidata/wikidata_excerpt.nt.gz", statements)
    if not archive.is_file():
        trex.render(data, archive, documents)
    dbpedia = [
        data / "dbpedia/dbo-snapshots_2026-07-22.ttl",
        data / "dbpedia/dbpedia_instances.nt.gz",
    ]
    virtuoso.require()
    with contextlib.ExitStack() as stack:
        wd = stack.enter_context(local_endpoint([statements], timeout_s=60))
        shutil.rmtree(folder / "virtuoso", ignore_errors=True)
        db = stack.enter_context(virtuoso.serving(folder / "virtuoso", dbpedia))
        trouble = {2: "429", 5: "502", 9: "cut", 40: "429", 41: "429", 90: "cut", 200: "502"}
        wdqs = Engine(("query.wikidata.org",), ("/sparql",), wd.url, trouble, SIZES)
        qlever = Engine(("qlever.dev",), ("/api/wikidata",), wd.url, changed=collated)
        partial = {3: "206", 12: "502", 50: "206"}
        resource = Engine(("dbpedia.org",), ("/sparql",), db, partial)
        services = [
            wdqs, qlever, resource, GitHub(data / "archives"), Figshare({TREX_FILE: archive}),
        ]  # fmt: skip
        yield stack.enter_context(Proxy(services, folder))

"""How politely an endpoint is asked: one policy per endpoint, and who is asking.

The table resources/endpoints.tsv holds the public endpoints with their published limits
(sources.md, sections 4 and 5); the defaults of `Policy` are those of the local server.
"""

import importlib.metadata
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from kgprobe import __version__

CONTACT_VARIABLE = "KGPROBE_CONTACT"


@dataclass(frozen=True)
class Policy:
    """Limits that the client keeps towards one endpoint. Times in seconds."""

    connections: int = 4
    interval: float = 0.0  #: least time between the starts of two requests
    server_timeout_ms: int = 0  #: sent as `timeout=`; 0 sends none
    connect: float = 2.0
    read: float = 120.0
    deadline: float = 240.0  #: of a whole page
    page_size: int = 5000
    max_page_size: int = 5000
    attempts: int = 2  #: of one page
    most_rows: int = 0  #: of one pull; above it the dump is the right source; 0 is no limit
    licence: str = ""


@dataclass(frozen=True)
class Endpoint:
    """A SPARQL endpoint: its short name (which, unlike the URL, never changes), URL and policy."""

    id: str
    url: str
    policy: Policy = Policy()

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is our own, which asks for no contact."""
        return self.id == "local"


class ContactError(ValueError):
    """A live access without anybody to reach; raised before the first request."""


def read_endpoints(path: str | Path) -> dict[str, Endpoint]:
    """The endpoints of a table like resources/endpoints.tsv, by id.

    The columns are id, url and the fields of Policy. Raises ValueError with file and row.
    """
    types = {f.name: f.type for f in fields(Policy)}
    rows = list(_rows(Path(path)))
    found: dict[str, Endpoint] = {}
    for number, row in rows:
        where = f"{path}, row {number}"
        if surplus := sorted(set(row) - {"id", "url", *types}):
            raise ValueError(
                f"{where}: unknown columns {surplus}; legal: id, url, {', '.join(types)}"
            )
        values = {}
        for name in set(row) & set(types):
            try:
                values[name] = types[name](row[name])  # type: ignore[operator]
            except ValueError as error:
                raise ValueError(f"{where}: column '{name}' is {row[name]!r}: {error}") from error
        found[row["id"]] = Endpoint(row["id"], row["url"], Policy(**values))
    return found


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    header: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        cells = line.split("\t")
        if not line or line.startswith("#"):
            continue
        if not header:
            header = cells
        elif len(cells) != len(header):
            raise ValueError(f"{path}, row {number}: {len(cells)} cells, expected {len(header)}")
        else:
            yield number, dict(zip(header, cells, strict=True))


def user_agent(endpoint: Endpoint, contact: str = "") -> str:
    """The User-Agent: name, version, project, and who can be reached.

    KGPROBE_CONTACT overrides `contact`, which comes from the config. Raises ContactError when a
    public endpoint would be asked without one: services refuse or slow down such clients.
    """
    import SPARQLWrapper

    contact = os.environ.get(CONTACT_VARIABLE, "") or contact
    if not contact and not endpoint.is_local:
        raise ContactError(
            f"{endpoint.id} ({endpoint.url}) is a public service and asks for a contact: set "
            f"`contact:` in the config or {CONTACT_VARIABLE} to a mail address or a page"
        )
    who = "; ".join(part for part in (_project_url(), contact) if part)
    who = f" ({who})" if who else ""
    return f"kgprobe/{__version__}{who} SPARQLWrapper/{SPARQLWrapper.__version__}"


def _project_url() -> str:
    """The first URL of pyproject.toml's [project.urls]; empty while there is none."""
    urls = importlib.metadata.metadata("kgprobe").get_all("Project-URL") or []
    return urls[0].partition(", ")[2] if urls else ""

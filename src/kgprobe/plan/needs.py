"""External requirements of a run, checked and reported before its first job.

For the jobs to do: a contact for public services, tokens for gated models and a network, without
which they would fail one after another; disk space and memory, without which they may fail.
"""

import shutil
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kgprobe.experiments import located
from kgprobe.http import contact_of
from kgprobe.plan.costs import Costs, asks_nobody, cost_of, model_of, weights_mb
from kgprobe.plan.jobs import PlannedJob
from kgprobe.settings import Settings
from kgprobe.sources.sparql.endpoint import read_endpoints
from kgprobe.workflow import sources

#: seconds for resolving all host names, and for one request to the hub
TIMEOUT = 5.0
#: maximum number of hosts, services and models named in a message
SHOWN = 5


class NeedsError(RuntimeError):
    """A run lacks requirements of its jobs; the message names all of them."""


@dataclass
class Outside:
    """URLs that jobs access, those whose operators want a contact, and the models on the hub that
    are not in the cache: name -> row of models.tsv."""

    urls: list[str] = field(default_factory=list)
    public: list[str] = field(default_factory=list)
    models: dict[str, Mapping[str, str]] = field(default_factory=dict)


def outside(
    settings: Settings, jobs: Iterable[PlannedJob], models: Mapping[str, Mapping[str, str]]
) -> Outside:
    """Collect the URLs that jobs access and the models on the hub that they need."""
    needs = Outside()
    endpoints = read_endpoints(located(settings.sources.endpoints))
    archives = {
        f"download_{name}_{number}": archive.url
        for (name, number), archive in sources.archives(settings).items()
    }
    files = {f"download_{name}": url for name, (_, url, _) in sources.downloads(settings).items()}
    for job in jobs:
        if url := {**archives, **files}.get(job.rule):
            needs.public.append(url)
        elif job.rule.startswith("pull") and not asks_nobody(job):
            chosen = sources.endpoint(settings, job.wildcards.get("source", "wikidata"))
            endpoint = endpoints.get(chosen.endpoint)
            if chosen.access == "live" and endpoint and not endpoint.is_local:
                needs.public.append(endpoint.url)
        elif (row := models.get(model_of(job), {})) and not _has(row):
            needs.models[model_of(job)] = row
    needs.urls = list(needs.public)
    if needs.models:
        from huggingface_hub import constants

        needs.urls.append(constants.ENDPOINT)
    return needs


def find_missing(
    settings: Settings,
    jobs: Sequence[PlannedJob],
    models: Mapping[str, Mapping[str, str]],
    costs: Costs,
    memory: Mapping[str, int],
    machine_mb: int,
) -> tuple[list[str], list[str]]:
    """Return (missing requirements without which jobs fail, warnings), a sentence each.

    `memory`: MB requested by each rule; `machine_mb`: available MB, 0 if jobs run elsewhere.
    """
    needs = outside(settings, jobs, models)
    fatal = [*_contact(settings, needs), *_network(needs)]
    if not fatal:
        fatal = _keys(needs)
    return fatal, [*_disk(settings, jobs, models, costs, needs), *_memory(jobs, memory, machine_mb)]


def check(fatal: Sequence[str], perhaps: Sequence[str]) -> str:
    """Return the warnings as one message. Raises NeedsError if jobs would fail."""
    message = "".join(f"\n  - {text}" for text in (*fatal, *perhaps))
    if fatal:
        raise NeedsError(f"before the first job: this run lacks what its jobs need{message}")
    return f"before the first job:{message}" if message else ""


def _contact(settings: Settings, needs: Outside) -> list[str]:
    if not needs.public or contact_of(settings.contact):
        return []
    # jobs come in no fixed order
    hosts = _format_names(sorted(map(_host, needs.public)))
    return [
        f"a contact, required by {hosts}; set `contact:` in the "
        "configuration, or the environment variable KGPROBE_CONTACT, to an email address or a web "
        "page"
    ]


def _network(needs: Outside) -> list[str]:
    """Report host names that cannot be resolved, as one problem if none can be."""
    from huggingface_hub import constants

    if needs.models and constants.HF_HUB_OFFLINE:
        return [
            f"weights: HF_HUB_OFFLINE is set, and the cache {constants.HF_HUB_CACHE} lacks "
            f"{_format_names(sorted(needs.models))}; unset it, or leave out these models"
        ]
    names = {_reached(url) for url in needs.urls}
    lost = unresolved(sorted(names))
    if not lost:
        return []
    if set(lost) == names:
        return [
            f"no network: none of the host names {_format_names(lost)} can be resolved; connect to "
            "a network, or use config/embedded.yaml, which needs none"
        ]
    return [f"a network: the host name {name} cannot be resolved; is it correct?" for name in lost]


def unresolved(names: Iterable[str]) -> list[str]:
    """Return the host names that have no address within TIMEOUT; all are resolved in parallel."""
    resolved: set[str] = set()

    def ask(name: str) -> None:
        try:
            socket.getaddrinfo(name, None)
        except socket.gaierror:
            return
        resolved.add(name)

    names = list(names)
    _ask_all(ask, ((name,) for name in names))
    return [name for name in names if name not in resolved]


def _ask_all(ask: Callable[..., None], questions: Iterable[tuple[Any, ...]]) -> None:
    """Call `ask` for all questions in parallel, waiting for each thread at most TIMEOUT."""
    threads = [threading.Thread(target=ask, args=one, daemon=True) for one in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)


def _keys(needs: Outside) -> list[str]:
    """Report models that the hub serves only to accounts that have accepted their terms."""
    gated: list[str] = []

    def ask(name: str, row: Mapping[str, str]) -> None:
        import huggingface_hub
        from huggingface_hub import errors

        repository = row["source"].partition(":")[2]
        revision = row.get("revision") or None
        url = huggingface_hub.hf_hub_url(repository, "config.json", revision=revision)
        try:
            huggingface_hub.get_hf_file_metadata(url, timeout=TIMEOUT)
        except errors.GatedRepoError:
            gated.append(f"{name} (https://huggingface.co/{repository})")
        except (OSError, errors.HfHubHTTPError):
            return  # other errors are raised where the weights are loaded

    _ask_all(ask, needs.models.items())
    if not gated:
        return []
    return [
        f"a key: access to {_format_names(sorted(gated))} is gated; accept the terms on these "
        "pages and set HF_TOKEN to a token of that account, or leave out these models"
    ]


def _disk(
    settings: Settings,
    jobs: Iterable[PlannedJob],
    models: Mapping[str, Mapping[str, str]],
    costs: Costs,
    needs: Outside,
) -> list[str]:
    """Report file systems with less free space than will be written to them."""
    here = Path(settings.data)
    wanted = {Path(): 0.0, here: 0.0}
    for job in jobs:
        cost = cost_of(job, models.get(model_of(job), {}).get("kind", "*"), costs)
        if cost:
            wanted[here if job.rule.startswith("download") else Path()] += cost.disk_mb
    if needs.models:
        from huggingface_hub import constants

        rows = {row["source"]: row for row in needs.models.values()}
        wanted[Path(constants.HF_HUB_CACHE)] = sum(map(weights_mb, rows.values()))
    disks: dict[int, tuple[Path, float]] = {}
    for path, size in wanted.items():
        there = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
        first, before = disks.get(there.stat().st_dev, (there, 0.0))
        disks[there.stat().st_dev] = first, before + size
    return [
        f"disk: about {size / 1000:,.1f} GB will be written to {path}, where {free / 1000:,.1f} GB "
        "are free"
        for path, size in disks.values()
        if size > (free := shutil.disk_usage(path).free / 1e6)
    ]


def _memory(jobs: Iterable[PlannedJob], memory: Mapping[str, int], machine_mb: int) -> list[str]:
    large = {job.rule: memory.get(job.rule, 0) for job in jobs}
    large = {rule: most for rule, most in large.items() if 0 < machine_mb < most}
    if not large:
        return []
    most = max(large, key=lambda rule: large[rule])
    return [
        f"memory: {_format_names(large)} need more than the {machine_mb:,} MB of this machine "
        f"({most}: {large[most]:,} MB); each runs alone and may be killed by the system"
    ]


def _has(row: Mapping[str, str]) -> bool:
    """Return whether a model needs no download: it is not on the hub, or it is cached, with weights
    (a command that looks a model up leaves its configuration alone in the cache)."""
    scheme, _, repository = row.get("source", "").partition(":")
    if scheme != "hub":
        return True
    import huggingface_hub

    from kgprobe.probes.models.reachable import CACHED

    def is_cached(name: str) -> bool:
        revision = row.get("revision") or None
        path = huggingface_hub.try_to_load_from_cache(repository, name, revision=revision)
        return isinstance(path, str)

    return is_cached("config.json") and any(map(is_cached, CACHED))


def _host(url: str) -> str:
    return urlsplit(url).hostname or url


def _reached(url: str) -> str:
    """Return the host contacted for a URL: that of a proxy, if the environment names one."""
    from requests.utils import get_environ_proxies, select_proxy

    return _host(select_proxy(url, get_environ_proxies(url)) or url)


def _format_names(names: Iterable[str]) -> str:
    known = list(dict.fromkeys(names))
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return ", ".join(known[:SHOWN]) + more

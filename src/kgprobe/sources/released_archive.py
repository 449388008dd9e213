"""Released data sets out of the archives of their repositories."""

import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

BEAR = ("BEAR", "BEAR-big", "relation_info.json")
ONTOPROBE = ("ontology", "memorizing")


def unpack(archive: Path, folder: Path, names: Sequence[str]) -> list[Path]:
    """Put the folders or files `names` of the zip `archive` into `folder`.

    They may lie below any top folder. Each appears whole or not at all. Raises ValueError when one
    is missing or the archive is damaged.
    """
    return unpack_as(archive, folder, {name: name for name in names})


def unpack_as(archive: Path, folder: Path, parts: Mapping[str, str]) -> list[Path]:
    """The same, each under a name of its own: `parts` is name -> path (its end) in the archive.

    Where several places fit, the one nearest to the top is taken.
    """
    made = []
    try:
        with zipfile.ZipFile(archive) as zipped:
            inside_it = [n for n in zipped.namelist() if not n.endswith("/")]
            for target, wanted in parts.items():
                members = _members(inside_it, wanted)
                if not members:
                    raise ValueError(f"{archive}: no {wanted} in it")
                final = folder / target
                temporary = final.with_name(f".{final.name}.part")
                shutil.rmtree(temporary, ignore_errors=True)
                for name, inside in members.items():
                    path = temporary / inside if inside else temporary
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(zipped.read(name))
                shutil.rmtree(final, ignore_errors=True)
                temporary.replace(final)
                made.append(final)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{archive}: not a sound zip archive ({error})") from error
    return made


def _members(names: Sequence[str], wanted: str) -> dict[str, str]:
    """Archive members below (or at) the folder or file `wanted`, with their path below it."""
    ends = Path(wanted).parts
    found: dict[int, dict[str, str]] = {}
    for name in names:
        parts = Path(name).parts
        for place in range(len(parts) - len(ends) + 1):
            if parts[place : place + len(ends)] == ends:
                below = "/".join(parts[place + len(ends) :])
                found.setdefault(place, {})[name] = below
                break
    return found[min(found)] if found else {}

"""Released data sets out of the archives of their repositories."""

import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

BEAR = ("BEAR", "BEAR-big", "relation_info.json")
ONTOPROBE = ("ontology", "memorizing")


def unpack(archive: Path, folder: Path, names: Sequence[str]) -> list[Path]:
    """Put the folders or files `names` of the zip `archive` into `folder`.

    They may lie below any top folder. Each appears whole or not at all. Raises ValueError when one
    is missing or the archive is damaged.
    """
    made = []
    try:
        with zipfile.ZipFile(archive) as zipped:
            inside_it = [n for n in zipped.namelist() if not n.endswith("/")]
            for wanted in names:
                members = {n: _below(n, wanted) for n in inside_it if _below(n, wanted) is not None}
                if not members:
                    raise ValueError(f"{archive}: no {wanted} in it")
                temporary = folder / f".{wanted}.part"
                shutil.rmtree(temporary, ignore_errors=True)
                for name, inside in members.items():
                    target = temporary / inside if inside else temporary
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(zipped.read(name))
                final = folder / wanted
                shutil.rmtree(final, ignore_errors=True)
                temporary.replace(final)
                made.append(final)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{archive}: not a sound zip archive ({error})") from error
    return made


def _below(name: str, wanted: str) -> str | None:
    """The path of an archive member below the folder (or file) `wanted`, None if elsewhere."""
    parts = Path(name).parts
    if wanted not in parts:
        return None
    return "/".join(parts[parts.index(wanted) + 1 :])

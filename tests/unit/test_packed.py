"""GGUF files in parts: hand-made packages, joined in order, and their possible errors."""

import hashlib
import shutil
from pathlib import Path

import pytest

from kgprobe.probes.models import packed
from kgprobe.probes.models.packed import PackedError

PARTS = (b"GGUF one ", b"two ", b"three")
WHOLE = hashlib.sha256(b"GGUF one two three").hexdigest()


def install(site: Path, name: str, files: dict[str, bytes], requires: tuple[str, ...] = ()) -> None:
    """Write a package as pip installs it: its files, RECORD and METADATA."""
    folder, info = site / name.replace("-", "_"), site / f"{name.replace('-', '_')}-1.dist-info"
    info.mkdir(parents=True)
    folder.mkdir()
    for file, content in files.items():
        (folder / file).write_bytes(content)
    (info / "RECORD").write_text("".join(f"{folder.name}/{file},,\n" for file in files))
    needed = "".join(f"Requires-Dist: {line}\n" for line in requires)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{needed}")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path / "site"


def split(site: Path, contents=PARTS, names=("00", "01", "02"), sums: str = WHOLE) -> None:
    """Install the package `split-gguf` and one for each part."""
    parts = [f"split-gguf-part{i}" for i in range(1, len(contents) + 1)]
    own = {"NOTICE.md": b"Only for tests.", "SHA256SUMS": f"{sums}  m.gguf\n".encode()}
    # the order of a package's requirements has no meaning
    install(site, "split-gguf", own, tuple(f"{part}==1" for part in reversed(parts)))
    for part, content, name in zip(parts, contents, names, strict=True):
        install(site, part, {f"m.gguf.part{name}": content})


def test_parts_are_joined_in_order_after_the_terms_are_shown(site, capsys):
    split(site)
    found = packed.packed("split-gguf", WHOLE)
    assert found.sha256 == WHOLE
    assert "tests" not in capsys.readouterr().err
    assert packed.join_parts(found).read_bytes() == b"".join(PARTS)
    assert "Terms of use of split-gguf:\nOnly for tests." in capsys.readouterr().err
    # once a process
    packed.join_parts(found)
    assert not capsys.readouterr().err


def test_more_than_nine_parts_are_written_as_digits(site):
    contents = [bytes([65 + i]) for i in range(11)]
    whole = hashlib.sha256(b"".join(contents)).hexdigest()
    split(site, contents, [f"{i:02}" for i in range(11)], whole)
    assert packed.packed("split-gguf").sha256 == whole


def test_a_whole_file_is_read_in_place(site):
    install(site, "whole-gguf", {"m.gguf": b"GGUF"})
    found = packed.packed("whole-gguf")
    assert packed.join_parts(found) == site / "whole_gguf/m.gguf"
    assert found.sha256 == hashlib.sha256(b"GGUF").hexdigest()


def without(package: str):
    def change(site: Path) -> None:
        split(site)
        shutil.rmtree(site / f"{package.replace('-', '_')}-1.dist-info")

    return change


def lost(site: Path) -> None:
    split(site)
    (site / "split_gguf_part2/m.gguf.part01").unlink()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda site: None, "the package split-gguf is not installed"),
        (without("split-gguf-part2"), "part 2 of 3 of split-gguf is missing: .*split-gguf-part2"),
        (lost, r"split-gguf: m\.gguf\.part01 is not there"),
        (lambda site: split(site, names=("00", "02", "01")),
         r"split-gguf-part2 holds m\.gguf\.part02: part 2 of 3 .* number 1; .* wrong order"),
        (lambda site: split(site, (PARTS[1], PARTS[0], PARTS[2])),
         "SHA256SUMS says .* a part is damaged, of another version or in the wrong place"),
        (lambda site: split(site, sums="none"), "one line 'sha256  file' was expected"),
        (lambda site: install(site, "split-gguf", {}, ("split-gguf-part1", "split-gguf-part3")),
         r"requires its parts \[1, 3\], which are not 1, 2"),
        (lambda site: install(site, "split-gguf", {"a.gguf": b"a", "b.gguf": b"b"}),
         "2 GGUF files in split-gguf, expected one"),
    ],
)  # fmt: skip
def test_missing_or_misordered_parts_are_reported(site, made, message):
    site.mkdir()
    made(site)
    with pytest.raises(PackedError, match=message):
        packed.packed("split-gguf")

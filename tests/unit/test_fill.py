"""Fillings against literal loops: one row per pass, no padding, no cache, no batches."""

import itertools

import numpy as np
import pytest
import torch

from kgprobe.probes.models.batching import Budget
from kgprobe.probes.scoring.fill import predict
from kgprobe.probes.scoring.fill.predict import FillItem, FillSettings
from tests.unit.literal_reading import literal_answer, stop_place
from tests.unit.tiny_models import tiny

MASKED = ["bert", "roberta", "albert"]
CAUSAL = ["gpt2", "llama", "mamba"]
ASKED = [
    FillItem("i1", 0, "The capital of [X] is [Y] .", "France", ("Paris", "Burkina Faso")),
    FillItem("i1", 1, "[X] has capital [Y].", "France", ("Paris",)),
    FillItem(
        "i2", 0, "Niger and [X] lie in Africa and in [Y]", "Nigeria", ("lie in Africa", "Rome")
    ),
    FillItem("i3", 0, "The capital of [X] is [Y] .", "France", ("Niger",)),
    FillItem("i4", 0, "The capital of [X] is [Y] .", "東京 [Y]", ("São Tomé",), (1, 2)),
]
INSIDE = FillItem("i5", 0, "[Y] is where [X] stands", "Rome", ("italy",))


def logits(loaded, row):
    with torch.no_grad():
        return loaded.model(torch.tensor([row])).logits[0].double()


def text_of(loaded, ids):
    return loaded.tokenizer.decode(list(ids), skip_special_tokens=True).strip()


def best(row, k):
    """Return (log p, id) of the k best tokens, with ties to the lower id."""
    result = torch.log_softmax(row, 0).tolist()
    return sorted(((p, i) for i, p in enumerate(result)), key=lambda x: (-x[0], x[1]))[:k]


def tie_range(row, token):
    result = row.tolist()
    better = sum(v > result[token] for v in result)
    return better + 1, better + sum(v == result[token] for v in result)


def sentence(item, middle):
    text = item.text.replace("[Y]", "\0").replace("[X]", item.subject).replace("\0", middle)
    return text[0].upper() + text[1:]


def gold_tokens(loaded, item, gold):
    """Return the gold's tokens as they occur in the sentence."""
    text = sentence(item, "\0" + gold + "\0")
    start = text.index("\0")
    gold = gold if start else gold[0].upper() + gold[1:]
    text = text[:start] + gold + text[start + len(gold) + 2 :]
    coded = loaded.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    pairs = zip(coded["input_ids"], coded["offset_mapping"], strict=True)
    before = len(text[:start].rstrip())  # a leading space belongs to the gold
    return [i for i, (a, b) in pairs if a < start + len(gold) and b > before]


def rows_of(columns, **wanted):
    """Return the rows of a table with the given values, as dictionaries."""
    keep = np.ones(len(columns["item"]), dtype=bool)
    for name, value in wanted.items():
        keep &= columns[name] == value
    return [{n: c[i] for n, c in columns.items()} for i in np.flatnonzero(keep)]


def masked_row(loaded, item, n):
    """Return the sentence with n masks; the space before them belongs to their answer."""
    tok = loaded.tokenizer
    before, after = sentence(item, "\0").split("\0")
    left = tok(before.rstrip(), add_special_tokens=False)["input_ids"]
    right = tok(after, add_special_tokens=False)["input_ids"]
    place = len(left) + 1
    masks = [tok.mask_token_id] * n
    return [tok.bos_token_id, *left, *masks, *right, tok.eos_token_id], place


@pytest.mark.parametrize("name", MASKED)
def test_masked_tops_and_ranks_equal_one_pass_per_row(name):
    loaded = tiny(name)
    asked = [*ASKED, INSIDE]
    result = predict.predict(loaded, asked, k=3)
    expected_top = expected_gold = 0
    for item in asked:
        golds = [gold_tokens(loaded, item, g) for g in item.golds]
        for n in sorted({len(g) for g in golds} | set(item.masks)):
            row, position = masked_row(loaded, item, n)
            outputs = logits(loaded, row)
            for j in range(n):
                lines = rows_of(result.top, item=item.item, template=item.template, masks=n,
                                position=j)  # fmt: skip
                literal = best(outputs[position + j], 3)
                assert [r["rank"] for r in lines] == [1, 2, 3]
                assert [r["token"] for r in lines] == [i for _, i in literal]
                assert [r["logprob"] for r in lines] == pytest.approx([p for p, _ in literal])
                assert [r["text"] for r in lines] == [
                    loaded.tokenizer.decode([i]) for _, i in literal
                ]
                expected_top += 3
            expected_top += 3
            for which, gold in enumerate(golds):
                if len(gold) != n:
                    continue
                lines = rows_of(result.golds, item=item.item, template=item.template, gold=which)
                assert [r["token"] for r in lines] == gold
                assert [r["masks"] for r in lines] == [n] * n
                for j, line in enumerate(lines):
                    logprob = float(torch.log_softmax(outputs[position + j], 0)[gold[j]])
                    assert line["logprob"] == pytest.approx(logprob)
                    assert (line["best"], line["worst"]) == tie_range(
                        outputs[position + j], gold[j]
                    )
                    expected_gold += 1
    assert len(result.top["item"]) == expected_top
    assert len(result.golds["item"]) == expected_gold


def whole(found, item, n):
    lines = rows_of(found.top, item=item.item, template=item.template, masks=n, position=-1)
    return [(r["text"], pytest.approx(r["logprob"])) for r in lines]


def test_parallel_decoding_finds_the_best_products():
    loaded = tiny("bert")
    item = ASKED[0]
    result = predict.predict(loaded, [FillItem("x", 0, item.text, item.subject, masks=(3,))], k=4)
    row, position = masked_row(loaded, item, 3)
    lists = [best(logits(loaded, row)[position + j], 8) for j in range(3)]
    combined = [
        (sum(p for p, _ in c), text_of(loaded, [i for _, i in c]))
        for c in itertools.product(*lists)
    ]
    combined.sort(key=lambda c: -c[0])
    assert [(t, p) for p, t in combined[:4]] == whole(result, FillItem("x", 0, "", ""), 3)


def literal_mask_beam(loaded, item, n, width, k):
    row, position = masked_row(loaded, item, n)
    alive = [(0.0, ())]
    for j in range(n):
        longer = []
        for total, ids in alive:
            filled = row[:position] + list(ids) + row[position + j :]
            longer += [
                (total + p, (*ids, i)) for p, i in best(logits(loaded, filled)[position + j], width)
            ]
        alive = sorted(longer, key=lambda x: -x[0])[:width]
    return [(text_of(loaded, ids), pytest.approx(p)) for p, ids in alive[:k]]


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_mask_beam_equals_a_literal_loop(name):
    loaded = tiny(name)
    asked = [FillItem("x", i, b.text, b.subject, masks=(2, 3)) for i, b in enumerate(ASKED)]
    result = predict.predict(loaded, asked, 2, FillSettings(strategy="beam", beams=4))
    for item, n in itertools.product(asked, (2, 3)):
        assert whole(result, item, n) == literal_mask_beam(loaded, item, n, 4, 2)


def next_logits(loaded, item):
    """Return a function of token ids: the logits after them in the slot, by a pass for each."""
    tok = loaded.tokenizer
    before, after = sentence(item, "\0").split("\0")
    left = tok(before.rstrip(), add_special_tokens=False)["input_ids"]
    if loaded.spec.kind == "causal":
        return lambda ids: logits(loaded, [tok.bos_token_id, *left, *ids])[-1]
    opening = tok.convert_tokens_to_ids("<extra_id_0>")
    context = torch.tensor([[*left, opening, *tok(after)["input_ids"]]])

    def decoded(ids):
        forced = torch.tensor([[0, opening, *ids]])
        with torch.no_grad():
            return loaded.model(input_ids=context, decoder_input_ids=forced).logits[0, -1].double()

    return decoded


def literal_beam(row, beams, k, limit, ends, text):
    """Run the beam of decoding.beam one row at a time."""
    alive, ended = [(0.0, ())], {}

    def keep(total, ids):
        name = text(ids)
        if name and (name not in ended or ended[name] < total):
            ended[name] = total

    for _ in range(limit):
        longer = []
        for total, ids in alive:
            seen = best(row(ids), 2 * beams)
            after = [(p, i) for p, i in seen if 0 < ends((*ids, i)) <= len(ids)]
            longer += [(total + p, (*ids, i)) for p, i in seen if (p, i) not in after]
            if after:
                share = sum(np.exp(p) for p, _ in after) / sum(np.exp(p) for p, _ in seen)
                longer.append((total + np.log(share), (*ids, after[0][1])))
        longer.sort(key=lambda x: -x[0])
        alive = []
        for total, ids in longer:
            if ends(ids):
                keep(total, ids)
            else:
                alive.append((total, ids))
            if len(alive) == beams:
                break
        first = sorted(ended.values(), reverse=True)[:k]
        if len(first) == k and first[-1] >= alive[0][0]:
            alive = []
            break
    for total, ids in alive:
        keep(total, ids)
    return sorted(ended.items(), key=lambda x: -x[1])[:k]


def literal_text(loaded):
    """Return functions of token ids: count up to the first after the answer, and answer text."""
    special = set(loaded.tokenizer.all_special_ids)

    def decoded(ids):
        return loaded.tokenizer.decode([i for i in ids if i not in special]).strip()

    def ends(ids):
        over = ids[-1] in special or "\n" in loaded.tokenizer.decode([ids[-1]])
        if not over and stop_place(decoded(ids), finished=False) is None:
            return 0
        size = len(text(ids))
        return min([n for n in range(1, len(ids)) if len(decoded(ids[:n])) > size] or [len(ids)])

    def text(ids):
        return literal_answer(decoded(ids))

    return ends, text


@pytest.mark.parametrize("name", [*CAUSAL, "t5"])
def test_phrases_next_tokens_and_gold_ranks_equal_a_literal_loop(name):
    loaded = tiny(name, bos="forced")
    asked = [*ASKED, INSIDE] if name == "t5" else ASKED
    result = predict.predict(loaded, asked, k=3, settings=FillSettings(beams=4, most_tokens=5))
    ends, text = literal_text(loaded)
    for item in asked[:3] if name == "mamba" else asked:
        row, key = next_logits(loaded, item), {"item": item.item, "template": item.template}
        lines = rows_of(result.top, **key, position=0)
        literal = best(row(()), 3)
        assert [r["token"] for r in lines] == [i for _, i in literal]
        assert [r["logprob"] for r in lines] == pytest.approx([p for p, _ in literal])
        lines = rows_of(result.top, **key, position=-1)
        literal = literal_beam(row, 4, 3, 5, ends, text)
        assert [(r["text"], pytest.approx(r["logprob"])) for r in lines] == literal
        assert {r["masks"] for r in lines} == {0}
        for which, gold in enumerate(item.golds):
            tokens = gold_tokens(loaded, item, gold)
            lines = rows_of(result.golds, **key, gold=which)
            assert [r["token"] for r in lines] == tokens
            for j, line in enumerate(lines):
                outputs = row(tokens[:j])
                assert line["logprob"] == pytest.approx(
                    float(torch.log_softmax(outputs, 0)[tokens[j]])
                )
                assert (line["best"], line["worst"]) == tie_range(outputs, tokens[j])
    shares = not any("no prefix sharing" in note for note in result.record["notes"])
    assert shares == (name != "mamba")


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_fixed_length_generation_ignores_stops(name):
    loaded = tiny(name, bos="forced")
    asked = [FillItem(b.item, b.template, b.text, b.subject, masks=(1, 3)) for b in ASKED[:3]]
    result = predict.predict(loaded, asked, 2, FillSettings(length="gold", beams=3))
    for item in asked:
        row = next_logits(loaded, item)
        for n in (1, 3):
            literal = literal_beam(row, 3, 2, n, lambda ids: 0, lambda ids: ids)
            expected = [(loaded.tokenizer.decode(i, skip_special_tokens=True).strip(),
                         pytest.approx(p)) for i, p in literal]  # fmt: skip
            assert whole(result, item, n) == expected
            greedy = []
            for j in range(n):
                lines = rows_of(result.top, item=item.item, template=item.template, masks=n,
                                position=j)  # fmt: skip
                literal = best(row(greedy), 2)
                assert [r["token"] for r in lines] == [i for _, i in literal]
                greedy.append(literal[0][1])


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_results_are_independent_of_batches_and_order(name):
    loaded = tiny(name, bos="forced" if name == "gpt2" else "")
    tables = []
    for positions, asked in ((1, ASKED), (64, ASKED), (1 << 20, ASKED[::-1])):
        rows = rows_of(predict.predict(loaded, asked, 3, budget=Budget(positions)).top)
        rows.sort(key=lambda r: tuple(r[c] for c in ("item", "template", "masks", "position",
                                                     "rank")))  # fmt: skip
        tables.append(rows)
    for other in tables[1:]:
        for one, two in zip(tables[0], other, strict=True):
            assert one["logprob"] == pytest.approx(two["logprob"], abs=1e-9)
            assert {**one, "logprob": 0} == {**two, "logprob": 0}


def test_equal_prompts_run_once_and_survive_out_of_memory(monkeypatch):
    loaded = tiny("gpt2", bos="forced")
    expected = predict.predict(loaded, ASKED, 3)
    assert expected.record["prompts"] == 4
    forward, failed = loaded.model.base_model.forward, []

    def short_of_memory(*args, **options):
        if len(args[0]) > 2 and not failed:
            failed.append(len(args[0]))
            raise torch.OutOfMemoryError
        return forward(*args, **options)

    monkeypatch.setattr(loaded.model.base_model, "forward", short_of_memory)
    result = predict.predict(loaded, ASKED, 3, budget=Budget(1 << 20))
    assert failed
    assert result.record["backoffs"] == [1 << 19]
    for name, column in result.top.items():
        if name == "logprob":
            assert column == pytest.approx(expected.top[name])
        else:
            assert (column == expected.top[name]).all()


def test_unsupported_items_are_skipped_and_counted():
    loaded = tiny("gpt2", bos="none")
    asked = [
        ASKED[0],
        INSIDE,
        FillItem("i6", 0, "[Y] [X]", "", ("Rome",)),
        FillItem("i7", 0, "[X] in [Y]", "a " * 122, ("Rome",)),
        FillItem("i8", 0, "[X] in [Y]", "It is", ("lie in Africa " * 12, "Rome")),
    ]
    result = predict.predict(loaded, asked, 1)
    assert result.record["left_out"] == {
        "mask slot not at the end": 1,
        "gold of more than 12 tokens": 1,
        "more than the model's 128 tokens": 1,
        "nothing before the mask slot": 1,
    }
    assert set(result.top["item"]) == {"i1", "i8"}
    with pytest.raises(ValueError, match="none of 1 items can be asked") as caught:
        predict.predict(loaded, [INSIDE], 1)
    assert str(caught.value).endswith(
        f"asked: mask slot not at the end (1 times); the first: {INSIDE.item}, template 0"
    )
    masked = predict.predict(tiny("bert"), [ASKED[0], asked[4]], 1, FillSettings(most_masks=2))
    assert ("i8", 0, 0, "gold of more than 2 tokens") in masked.left_out
    bert = tiny("bert")
    bert.limit = len(bert.tokenizer(sentence(ASKED[0], "<mask>"))["input_ids"]) + 1
    wide = FillItem("wide", 0, ASKED[0].text, ASKED[0].subject, masks=(2, 3))
    masked = predict.predict(bert, [wide], 1)
    assert masked.left_out == [("wide", 0, -1, f"more than the model's {bert.limit} tokens")]
    assert set(masked.top["masks"]) == {2}


@pytest.mark.parametrize(("k", "length", "kept"), [
    (0, "free", {"i1", "near"}),
    (1, "free", {"i1", "near"}),
    (1, "gold", {"i1"}),  # as many tokens are generated as the longest of all golds has
])  # fmt: skip
def test_golds_longer_than_the_generation_must_fit_the_window(k, length, kept):
    loaded = tiny("gpt2")
    near = FillItem("near", 0, "[X] in [Y]", "a " * 400, ("Rome",))
    long = FillItem("long", 0, near.text, near.subject, ("lie in Africa",))
    before = loaded.tokenizer(sentence(near, "").strip())["input_ids"]
    # one token more would have no position
    loaded.limit = len(before) + len(gold_tokens(loaded, near, "Rome"))
    loaded.model.transformer.wpe = torch.nn.Embedding.from_pretrained(
        loaded.model.transformer.wpe.weight[: loaded.limit]
    )
    settings = FillSettings(most_tokens=1, length=length)
    result = predict.predict(loaded, [long, ASKED[0], near], k, settings)
    assert {reason for *_, reason in result.left_out} == {"more than the model's 404 tokens"}
    assert set(result.golds["item"]) == kept


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("bert", {"length": "free"}, "masked model bert fills a given number of masks"),
        ("gpt2", {"strategy": "beam"}, "causal model gpt2 has no masks to fill by 'beam'"),
    ],
)
def test_settings_of_another_kind_raise(name, settings, message):
    with pytest.raises(ValueError, match=message):
        predict.predict(tiny(name), ASKED, 1, FillSettings(**settings))

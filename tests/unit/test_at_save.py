"""Probing at every checkpoint of a real, tiny training run, which the probing must not change."""

import doctest
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
import transformers

from kgprobe import schema
from kgprobe.metrics.intervals import wilson
from kgprobe.probes.jobs import at_save
from kgprobe.probes.jobs.at_save import FILE, ProbeAtSave
from kgprobe.probes.models.load import ModelError
from kgprobe.schema import CANDIDATES, ITEMS, PROBED, PROMPTS
from kgprobe.templates import fill
from tests.unit.literal_scores import row_sum
from tests.unit.test_answers import capitals
from tests.unit.tiny_models import tiny

STEPS, EVERY = 60, 30


@pytest.fixture(scope="module")
def frames():
    return capitals(["fact"] * 8 + ["train"], "The capital of [X] is [Y].", "[Y] lies in [X].")


@pytest.fixture
def folder(frames, tmp_path) -> Path:
    """Write a benchmark of eight countries with different answers."""
    items, candidates, prompts = frames
    golds = [[n % candidates.height] for n in range(items.height)]
    items = items.with_columns(answers=pl.Series(golds, dtype=ITEMS.columns["answers"]))
    tables = {"items": (items, ITEMS), "candidates": (candidates, CANDIDATES)}
    for name, (frame, contract) in {**tables, "prompts": (prompts, PROMPTS)}.items():
        schema.write(frame, contract, tmp_path / "set" / f"{name}.parquet")
    return tmp_path / "set"


def sentences(folder: Path) -> list[str]:
    """Return every item's sentence with its correct option, under every template."""
    items = schema.read(folder / "items.parquet", ITEMS)
    labels = schema.read(folder / "candidates.parquet", CANDIDATES).sort("index")["label"]
    texts = schema.read(folder / "prompts.parquet", PROMPTS)["text"]
    pairs = items.select("subject", "answers").rows()
    return [fill(text, subject, labels[own[0]]).text for text in texts for subject, own in pairs]


def trained(folder: Path, out: Path, callbacks: list):
    """Return the model trained on the sentences, and its trainer."""
    loaded = tiny("llama", double=False)
    model = loaded.model.requires_grad_(True)
    for layer in model.model.layers:  # random numbers that probing must not consume
        layer.self_attn.attention_dropout = 0.1
    rows = [loaded.tokenizer(f"<s>{text}", add_special_tokens=False) for text in sentences(folder)]
    data = [{**row, "labels": row["input_ids"]} for row in rows]

    def collated(batch):
        longest = max(len(row["input_ids"]) for row in batch)
        fills = {"input_ids": 0, "attention_mask": 0, "labels": -100}
        return {
            name: torch.tensor([row[name] + [own] * (longest - len(row[name])) for row in batch])
            for name, own in fills.items()
        }

    args = transformers.TrainingArguments(
        str(out), max_steps=STEPS, save_steps=EVERY, learning_rate=5e-3, seed=0, report_to=[],
        per_device_train_batch_size=8, use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model, args, train_dataset=data, data_collator=collated, callbacks=callbacks,
        processing_class=loaded.tokenizer,
    )  # fmt: skip
    trainer.train()
    return trainer


def by_hand(folder: Path, model, tokenizer) -> dict[int, list[float]]:
    """Compute hits with one sentence per pass; a hit if the highest sum is a correct option."""
    model.eval()
    items = schema.read(folder / "items.parquet", ITEMS).filter(role="fact")
    assert items.height == 8
    labels = schema.read(folder / "candidates.parquet", CANDIDATES).sort("index")["label"]
    result: dict[int, list[float]] = {}
    for index, text in (
        schema.read(folder / "prompts.parquet", PROMPTS).select("index", "text").rows()
    ):
        for subject, answers in items.select("subject", "answers").rows():
            sums = []
            for label in labels:
                text_ids = tokenizer(fill(text, subject, label).text, add_special_tokens=False)
                sums.append(row_sum(model, [tokenizer.bos_token_id, *text_ids["input_ids"]]))
            result.setdefault(index, []).append(float(int(np.argmax(sums)) in answers))
    return result


def test_every_save_adds_rows_and_training_is_unchanged(folder, tmp_path):
    trainer = trained(folder, tmp_path / "with", [ProbeAtSave(folder, "causal", "forced")])
    rows = schema.read(tmp_path / "with" / FILE, PROBED)
    assert sorted(set(rows["step"])) == [EVERY, STEPS]
    assert {p.name for p in (tmp_path / "with").glob("checkpoint-*")} == {
        f"checkpoint-{EVERY}", f"checkpoint-{STEPS}",
    }  # fmt: skip
    for step in (EVERY, STEPS):
        model = transformers.AutoModelForCausalLM.from_pretrained(
            tmp_path / "with" / f"checkpoint-{step}", dtype=torch.float32
        )
        expected = by_hand(folder, model, trainer.processing_class)
        selected = rows.filter(step=step)
        assert selected["template"].to_list() == sorted(expected)
        for template, accuracy, low, high, n in selected.select(
            "template", "accuracy", "low", "high", "n"
        ).rows():
            hits = expected[template]
            assert (accuracy, n) == (np.mean(hits), len(hits))
            assert (low, high) == pytest.approx(wilson(sum(hits), len(hits)))
    chance = 1 / schema.read(folder / "candidates.parquet", CANDIDATES).height
    assert rows.filter(step=STEPS)["accuracy"].mean() > chance, (
        "it has learned what it was trained on"
    )
    assert trainer.model.training
    alone = trained(folder, tmp_path / "without", [])
    for (name, p), q in zip(
        trainer.model.named_parameters(), alone.model.parameters(), strict=True
    ):
        assert torch.equal(p, q), name


def save(probe: ProbeAtSave, model, out: Path, step: int, is_first: bool = True) -> None:
    """Call the probe like a Trainer that saves at a step."""
    args = transformers.TrainingArguments(str(out), report_to=[], use_cpu=True)
    state = transformers.TrainerState(global_step=step, is_world_process_zero=is_first)
    probe.on_save(args, state, transformers.TrainerControl(), model=model)


def test_retrained_steps_replace_their_rows(folder, tmp_path):
    model = tiny("gpt2", double=False)
    given = ProbeAtSave(folder, "causal", "forced", model.tokenizer), model.model, tmp_path
    for step in (10, 20, 30):
        save(*given, step)
    first = schema.read(tmp_path / FILE, PROBED)
    save(*given, 20)
    rows = schema.read(tmp_path / FILE, PROBED)
    assert sorted(set(rows["step"])) == [10, 20]
    assert rows.equals(first.filter(pl.col("step") < 30))
    save(*given, 40, is_first=False)
    assert schema.read(tmp_path / FILE, PROBED).equals(rows)


def test_docstring_example_runs(tmp_path):
    example = doctest.DocTestParser().get_doctest(
        ProbeAtSave.__doc__, {**vars(at_save), "folder": str(tmp_path)}, "ProbeAtSave", None, 0
    )
    output: list[str] = []
    assert doctest.DocTestRunner().run(example, out=output.append).failed == 0, "".join(output)
    assert len(example.examples) > 9


def test_unsupported_input_raises_a_clear_error(folder, tmp_path):
    with pytest.raises(ModelError, match="kind 'api'; valid: masked, causal, seq2seq"):
        ProbeAtSave(folder, "api")
    with pytest.raises((OSError, ValueError), match="items"):
        ProbeAtSave(tmp_path / "nowhere", "causal")
    with pytest.raises(ModelError, match="needs a fast tokenizer"):
        save(ProbeAtSave(folder, "causal"), tiny("gpt2", double=False).model, tmp_path, 1)

"""Probe a model during training: score a benchmark at every save of transformers' Trainer.

    Trainer(..., callbacks=[ProbeAtSave("results/embedded/benchmarks/world_lite", "causal")])

writes `probes.parquet` (PROBED) beside the checkpoints. Training is not affected: no gradient, no
random number, and the mode of every module is restored.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import transformers

from kgprobe import schema
from kgprobe.metrics.intervals import of_hits
from kgprobe.probes.jobs.score import tables
from kgprobe.probes.models.load import AUTO, Loaded, ModelError, ModelSpec, usual_bos, window
from kgprobe.probes.scoring.sentence import score
from kgprobe.sampling import select_asked
from kgprobe.schema import PROBED

#: the file beside the checkpoints
FILE = "probes.parquet"


class ProbeAtSave(transformers.TrainerCallback):  # type: ignore[misc]
    """Scores the benchmark in `folder` (items, candidates and prompts) at every save.

    `kind` is that of models.tsv, `bos` its BOS policy; the tokenizer is the Trainer's
    `processing_class` unless one is given. With several processes the first one scores, with the
    whole model: models whose weights are sharded across processes are not supported. Raises
    ContractError for an invalid benchmark folder, ModelError for a training without a fast
    tokenizer.

    Example with a one-layer model and a byte-level tokenizer, saved at two steps:

    >>> import tokenizers
    >>> from kgprobe import benchmark
    >>> place = Path(folder) / "world_lite_20"
    >>> benchmark("world_lite").sampled(20).write(place)
    >>> bytes_alone = tokenizers.ByteLevelBPETokenizer()
    >>> bytes_alone.train_from_iterator(["Paris is in France."], 257, special_tokens=["<s>"])
    >>> tokenizer = transformers.PreTrainedTokenizerFast(
    ...     tokenizer_object=bytes_alone._tokenizer, bos_token="<s>", pad_token="<s>")
    >>> config = transformers.GPT2Config(
    ...     n_layer=1, n_head=1, n_embd=8, vocab_size=len(tokenizer), bos_token_id=0,
    ...     eos_token_id=0)
    >>> trainer = transformers.Trainer(
    ...     transformers.GPT2LMHeadModel(config),
    ...     transformers.TrainingArguments(
    ...         str(Path(folder) / "trained"), max_steps=2, save_steps=1, report_to=[],
    ...         use_cpu=True, disable_tqdm=True),
    ...     train_dataset=[tokenizer("Paris is in France.")],
    ...     data_collator=transformers.DataCollatorForLanguageModeling(tokenizer, mlm=False),
    ...     processing_class=tokenizer,
    ...     callbacks=[ProbeAtSave(place, "causal")])
    >>> trained = trainer.train()  # doctest: +ELLIPSIS
    {'train_runtime': ...}
    >>> rows = pl.read_parquet(Path(folder) / "trained" / FILE)
    >>> rows.select("step", "template", "n").rows()
    [(1, 0, 20), (1, 1, 20), (1, 2, 20), (2, 0, 20), (2, 1, 20), (2, 2, 20)]
    """

    def __init__(self, folder: str | Path, kind: str, bos: str = "", tokenizer: Any = None) -> None:
        if kind not in AUTO:
            raise ModelError(f"kind {kind!r}; valid: {', '.join(AUTO)}")
        self.kind, self.bos = kind, bos or usual_bos(kind)
        self.tokenizer = tokenizer
        names = {"items": schema.ITEMS, "candidates": schema.CANDIDATES, "prompts": schema.PROMPTS}
        frames = {n: schema.read(Path(folder) / f"{n}.parquet", c) for n, c in names.items()}
        items = select_asked(frames["items"])
        self.golds = {item: set(gold) for item, gold in items.select("item", "answers").rows()}
        self.questions = tables(items, frames["candidates"], frames["prompts"])

    def on_save(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Score the benchmark and write this step's rows, replacing those from this step on."""
        if not state.is_world_process_zero:
            return
        path = Path(args.output_dir) / FILE
        rows = self._rows(int(state.global_step), self._loaded(given))
        if path.is_file():
            before = schema.read(path, PROBED).filter(pl.col("step") < state.global_step)
            rows = pl.concat([before, rows])
        schema.write(rows, PROBED, path)

    def _loaded(self, given: dict[str, Any]) -> Loaded:
        """Wrap the model in training for scoring; for adapters, the model that they modify."""
        model = given["model"]
        model = model.get_base_model() if hasattr(model, "peft_config") else model
        tokenizer = self.tokenizer or given.get("processing_class")
        if tokenizer is None or not getattr(tokenizer, "is_fast", False):
            raise ModelError(
                "ProbeAtSave needs a fast tokenizer: give the Trainer `processing_class`, or "
                "ProbeAtSave `tokenizer`"
            )
        spec = ModelSpec("trained", self.kind, "folder:trained", bos=self.bos)
        return Loaded(spec, model, tokenizer, model.device, window(model.config))

    def _rows(self, step: int, loaded: Loaded) -> pl.DataFrame:
        with _evaluation_mode(loaded.model):
            columns = score.score(loaded, *self.questions).columns
        hits: dict[int, list[float]] = {}
        questions = pl.DataFrame(
            {name: columns[name] for name in ("item", "template", "candidate", "sum")}
        ).group_by("item", "template", maintain_order=True)
        for (item, template), scores in questions:
            best = {*scores.filter(pl.col("sum") == pl.col("sum").max())["candidate"]}
            hits.setdefault(template, []).append(len(best & self.golds[item]) / len(best))
        rows = []
        for template, values in sorted(hits.items()):
            low, high, kind = of_hits(np.array(values))
            rows.append((step, template, float(np.mean(values)), low, high, kind, len(values)))
        return pl.DataFrame(rows, schema=dict(PROBED.columns), orient="row")


@contextmanager
def _evaluation_mode(model: Any) -> Iterator[None]:
    """Put the model in evaluation mode inside the context, and restore every module's mode."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode

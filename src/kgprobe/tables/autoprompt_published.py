"""The printed figures of AutoPrompt (Shin et al. 2020), matched to our models, prompts and sets.

A printed value stands beside ours only where the model is the same and our set is the whole one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kgprobe.tables.published import read_tsv

#: benchmark -> its name in the printed Table 4
SETS = {
    "auto_lama": "original",
    "auto_lama_trex": "trex",
    "auto_lama_roberta": "original-roberta",
}
#: benchmark -> its column in the printed Table 2
VARIANTS = {"auto_sick": "standard", "auto_sick_3way": "three_way", "auto_sick_2way": "two_way"}
#: benchmark -> column of the printed Table 5
CONTEXTS = {"auto_re": "original", "auto_re_perturbed": "perturbed"}
#: test examples of the whole sets; of a part of them no printed value is shown
WHOLE = {
    "auto_lama": 34_039,
    "auto_lama_trex": 7_266,
    "auto_lama_roberta": 29_520,
    "auto_sst2": 1_821,
    "auto_sick": 4_927,
    "auto_sick_3way": 2_160,
    "auto_sick_2way": 1_440,
}
#: our prompt -> the printed method, by kind of table
FACTS = {
    "manual": "LAMA",
    "lpaqa": "LPAQA top-1",
    "searched": "AutoPrompt 5 tokens",
    "searched_7": "AutoPrompt 7 tokens",
}
EXTRACTION = {"manual": "LAMA", "lpaqa": "LPAQA", "searched": "AutoPrompt"}
CLASSES = {
    "majority": "majority",
    "linear_probe": "linear probe",
    "finetuned": "fine-tuned",
    "manual": "manual prompt",
    "searched": "autoprompt",
}
RELATIONS = {"manual": "lama", "lpaqa": "lpaqa", "searched": "autoprompt_5"}
#: the model of Table 6; Tables 1 and 2 print bert-base, which the released code says is cased
BERT = "bert-base-cased"
SHORT = {BERT: "bert-base"}

Key = tuple[str, ...]


@dataclass(frozen=True)
class Published:
    """Printed values in per cent by (model, method, column), and per relation."""

    sentiment: Mapping[Key, float]
    inference: Mapping[Key, float]
    facts: Mapping[Key, float]
    extraction: Mapping[Key, float]
    relations: Mapping[Key, float]

    def sentiment_of(self, model: str, prompt: str, split: str) -> float | None:
        """Table 1: accuracy of `split` dev or test."""
        return self.sentiment.get((SHORT.get(model, model), CLASSES.get(prompt, ""), split))

    def inference_of(self, model: str, prompt: str, benchmark: str) -> float | None:
        """Table 2: test accuracy. The majority needs no model."""
        name = "" if prompt == "majority" else SHORT.get(model, model or "-")
        return self.inference.get((name, CLASSES.get(prompt, ""), VARIANTS[benchmark]))

    def facts_of(self, model: str, prompt: str, benchmark: str, measure: str) -> float | None:
        """Table 4: `measure` is p1, p10 or mrr, macro over relations."""
        column = {"p1": "p_at_1", "p10": "p_at_10", "mrr": "mrr"}[measure]
        return self.facts.get((SETS.get(benchmark, ""), model, FACTS.get(prompt, ""), column))

    def extraction_of(self, model: str, prompt: str, benchmark: str) -> float | None:
        """Table 5: P@1 by the any-sentence rule, macro over relations."""
        return self.extraction.get((model, EXTRACTION.get(prompt, ""), CONTEXTS[benchmark]))

    def relation_of(self, model: str, prompt: str, relation: str) -> float | None:
        """Table 6: P@1 of one relation, bert-base-cased."""
        return (
            self.relations.get((relation, RELATIONS[prompt])) if _printed(model, prompt) else None
        )


def _printed(model: str, prompt: str) -> bool:
    return model == BERT and prompt in RELATIONS


def read(folder: str | Path) -> Published:
    """Read the five tables of the folder of published figures."""
    folder = Path(folder)
    return Published(
        _values(folder / "autoprompt_sentiment.tsv", 2),
        _values(folder / "autoprompt_inference.tsv", 2),
        _values(folder / "autoprompt_facts.tsv", 3),
        _values(folder / "autoprompt_relation_extraction.tsv", 2),
        _values(folder / "autoprompt_relations.tsv", 1),
    )


def whole(benchmark: str, examples: int) -> bool:
    """Whether `examples` test examples are the whole set that the paper's values belong to."""
    return WHOLE.get(benchmark) == examples


def _values(path: Path, names: int) -> dict[Key, float]:
    """(name cells, column) -> value of a table whose first `names` columns name the row."""
    frame = read_tsv(path)
    found = {}
    for row in frame.iter_rows(named=True):
        key = tuple(row[c] or "" for c in frame.columns[:names])
        for column in frame.columns[names:]:
            if row[column]:
                found[*key, column] = float(row[column])
    return found

"""BEAR sets as tasks of lm-evaluation-harness, over the parquet of `huggingface`.

There is one task per template, whose standard error is over its items, under a group, whose `acc`
is the mean over templates. The harness pools the standard errors of a group as if each template had
its own questions; the task `_mean` asks every question with all its templates and has the standard
error of that mean. For causal models. With an empty context the harness conditions on its prefix
token (BOS, else EOS), so its `acc` is comparable with BOS policy `forced`.

Multiple-choice questions have a task for each subset; the most likely option text is the answer.
They have a context, to which the harness prepends no BOS unless the tokenizer does: `acc` is
comparable with BOS policy `none`, and with `forced` if the model has `add_bos_token=True`.
"""

from kgprobe.benchmarks.bear.frames import BearFrames
from kgprobe.tables.exports.folders import scalar
from kgprobe.tables.exports.huggingface import FILE, Asked, part

#: The rows are in a file next to this one, so that the tasks run from any folder.
LOADER = f'''\
# Loads the rows of one template or part, or all rows, for the tasks in this folder.
from pathlib import Path

import datasets


def rows(configuration, template=None, part=None, **_):
    path = Path(__file__).parent / configuration / "{FILE}"
    found = datasets.Dataset.from_parquet(str(path))
    if template is not None:
        found = found.filter(lambda row: row["template_index"] == template)
    if part is not None:
        found = found.filter(lambda row: row["part"] == part)
    return {{"test": found}}


# one row per question: its sentences with all templates, concatenated
def questions(configuration, **_):
    found = {{}}
    for row in rows(configuration)["test"]:
        own = {{"item": row["item"], "text_options": [], "right": [], "first": 0}}
        own = found.setdefault(row["item"], own)
        own["text_options"] += row["text_options"]
        right = row["correct"] if isinstance(row["correct"], list) else [row["correct"]]
        own["right"].append(right)
        own["first"] = own["right"][0][0]
    return {{"test": datasets.Dataset.from_list(list(found.values()))}}


# the fraction of a question's templates with which the most likely option is correct
def mean_over_templates(doc, results):
    scores = [result[0] for result in results]
    size = len(scores) // len(doc["right"])
    hits = []
    for number, right in enumerate(doc["right"]):
        own = scores[number * size : (number + 1) * size]
        hits.append(own.index(max(own)) in right)
    return {{"acc": sum(hits) / len(hits)}}
'''


GROUP = """\
# {configuration} for lm-evaluation-harness: acc is the mean over {of}.{note}
#   lm_eval --include_path THIS_FOLDER --tasks {group} --model hf --model_args pretrained=...
group: {group}
task:
{tasks}
aggregate_metric_list:
  - metric: acc
    weight_by_size: true
metadata:
  version: 1.0
"""
TASK = """\
task: {name}
custom_dataset: !function kgprobe_rows.{rows}
dataset_kwargs:
  configuration: {configuration}{which}
test_split: test
num_fewshot: 0
output_type: multiple_choice
doc_to_text: {text}
doc_to_choice: {options}
doc_to_target: {correct}
{delimiter}
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1.0
"""


#: options are whole sentences: nothing may precede them
WHOLE = """\
# options are whole sentences: nothing may precede them, not even a space
target_delimiter: ""\
"""
SENTENCES = {"rows": "rows", "text": '""', "options": "text_options", "correct": "correct",
             "delimiter": WHOLE}  # fmt: skip
MEAN = {**SENTENCES, "rows": "questions", "correct": "first", "which": "",
        "delimiter": f"{WHOLE}\nprocess_results: !function kgprobe_rows.mean_over_templates"
        }  # fmt: skip
CHOICES = {"rows": "rows", "text": "prompt", "options": "options", "correct": "correct",
           "delimiter": 'target_delimiter: " "'}  # fmt: skip
NOTE = """ The harness
# computes its standard error as if each template asked other questions; {group}_mean has the
# standard error over questions.\
"""


def files(configuration: str, questions: Asked) -> dict[str, str]:
    """Return names and texts of the files: a group `kgprobe_CONFIGURATION`, a task for each
    template and one for their mean by question, or for each subset of CHOICES, and the loader of
    their rows."""
    group = f"kgprobe_{configuration}"
    beside: dict[str, dict[str, str]] = {}
    if isinstance(questions, BearFrames):
        templates = sorted(set(questions.prompts["index"]))
        tasks = {
            f"{group}_template_{i}": {**SENTENCES, "which": f"\n  template: {i}"} for i in templates
        }
        beside[f"{group}_mean"] = MEAN
        of, note = "templates, by their questions", NOTE.format(group=group)
    else:
        parts = sorted({part(*row) for row in questions.select("task", "premise").rows()})
        tasks = {f"{group}_{p}": {**CHOICES, "which": f"\n  part: {p}"} for p in parts}
        of, note = "questions", ""
    listed = "\n".join(f"  - {scalar(name)}" for name in tasks)
    head = {"configuration": configuration, "group": scalar(group), "tasks": listed}
    texts = {
        f"{name}.yaml": TASK.format(name=scalar(name), configuration=scalar(configuration), **how)
        for name, how in (tasks | beside).items()
    }
    texts[f"{group}.yaml"] = GROUP.format(**head, of=of, note=note)
    return {**texts, "kgprobe_rows.py": LOADER}

"""BEAR sets as tasks of lm-evaluation-harness, over the parquet of `huggingface`.

One task per template, whose standard error is then that of its items, under a group, whose `acc` is
the mean over templates. The harness pools the standard errors of a group as if each template had
questions of its own; the task `_mean` asks every question in all its templates and has the standard
error of that mean. For causal models. With an empty context the harness conditions on its prefix
token (BOS, else EOS), so its `acc` compares with BOS policy `forced`.

Multiple-choice questions are a task for each of their parts; the likeliest text of an option
counts. They have a context, before which the harness puts no BOS that the tokenizer does not add:
`acc` compares with BOS policy `none`, and with `forced` where the model has `add_bos_token=True`.
"""

from collections.abc import Iterable, Mapping

from kgprobe.tables.exports.folders import scalar
from kgprobe.tables.exports.huggingface import FILE

#: The rows are found beside this file, so that the tasks run from any folder.
LOADER = f'''\
# The rows of one template or part, or of all, for the tasks beside this file.
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


# a row for each question: its sentences under all templates, one behind the other
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


# the fraction of a question's templates under which the likeliest option is right
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


#: options are whole sentences: nothing may stand before them
WHOLE = """\
# options are whole sentences: nothing may stand before them, not even a space
target_delimiter: ""\
"""
SENTENCES = {"rows": "rows", "text": '""', "options": "text_options", "correct": "correct",
             "delimiter": WHOLE}  # fmt: skip
MEAN = {**SENTENCES, "rows": "questions", "correct": "first", "which": "",
        "delimiter": f"{WHOLE}\nprocess_results: !function kgprobe_rows.mean_over_templates"
        }  # fmt: skip
CHOICES = {"rows": "rows", "text": "prompt", "options": "options", "correct": "correct",
           "delimiter": 'target_delimiter: " "'}  # fmt: skip
NOTE = """ Its standard error
# is the harness's own, which takes each template for questions of its own; {group}_mean has that of
# the questions.\
"""


def files(configuration: str, templates: Iterable[int]) -> dict[str, str]:
    """Names and texts of the files: a group `kgprobe_CONFIGURATION`, a task for each template, one
    for their mean by question, and what they load their rows by."""
    group = f"kgprobe_{configuration}"
    tasks = {
        f"{group}_template_{i}": {**SENTENCES, "which": f"\n  template: {i}"} for i in templates
    }
    note = NOTE.format(group=group)
    texts = _group(configuration, group, tasks, "templates, by their questions", note)
    name = f"{group}_mean"
    texts[f"{name}.yaml"] = _task(name, configuration, MEAN)
    return texts


def files_of_choices(configuration: str, parts: Iterable[str]) -> dict[str, str]:
    """Names and texts of the files for multiple-choice questions: a group, a task for each part."""
    group = f"kgprobe_{configuration}"
    tasks = {f"{group}_{p}": {**CHOICES, "which": f"\n  part: {p}"} for p in parts}
    return _group(configuration, group, tasks, "questions", "")


def _task(name: str, configuration: str, fields: Mapping[str, str]) -> str:
    return TASK.format(name=scalar(name), configuration=scalar(configuration), **fields)


def _group(
    configuration: str, group: str, tasks: Mapping[str, Mapping[str, str]], of: str, note: str
) -> dict[str, str]:
    texts = {f"{name}.yaml": _task(name, configuration, fields) for name, fields in tasks.items()}
    listed = "\n".join(f"  - {scalar(name)}" for name in tasks)
    common = {"configuration": configuration, "group": scalar(group), "tasks": listed}
    texts[f"{group}.yaml"] = GROUP.format(**common, of=of, note=note)
    return {**texts, "kgprobe_rows.py": LOADER}

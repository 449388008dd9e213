"""BEAR sets as tasks of lm-evaluation-harness, over the parquet of `huggingface` (bear.md, 10.2).

One task per template, whose standard error is then that of its items, under a group, whose `acc` is
the mean over templates. For causal models. With an empty context the harness conditions on its
prefix token (BOS, else EOS), so its `acc` compares with BOS policy `forced`.
"""

from collections.abc import Iterable

from kgprobe.tables.exports.huggingface import FILE

#: The rows are found beside this file, so that the tasks run from any folder.
LOADER = f'''\
# The rows of one template, for the tasks beside this file.
from pathlib import Path

import datasets


def rows(configuration, template, **_):
    path = Path(__file__).parent / configuration / "{FILE}"
    found = datasets.Dataset.from_parquet(str(path))
    return {{"test": found.filter(lambda row: row["template_index"] == template)}}
'''


GROUP = """\
# {configuration} for lm-evaluation-harness: acc is the mean over templates, each with as many rows.
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
custom_dataset: !function kgprobe_rows.rows
dataset_kwargs:
  configuration: {configuration}
  template: {index}
test_split: test
num_fewshot: 0
output_type: multiple_choice
doc_to_text: ""
doc_to_choice: text_options
doc_to_target: correct
# options are whole sentences: nothing may stand before them, not even a space
target_delimiter: ""
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1.0
"""


def files(configuration: str, templates: Iterable[int]) -> dict[str, str]:
    """Names and texts of the files: a group `kgprobe_CONFIGURATION`, a task for each template, and
    what they load their rows by."""
    group = f"kgprobe_{configuration}"
    tasks = {index: f"{group}_template_{index}" for index in templates}
    made = {
        f"{name}.yaml": TASK.format(name=name, configuration=configuration, index=index)
        for index, name in tasks.items()
    }
    listed = "\n".join(f"  - {name}" for name in tasks.values())
    made[f"{group}.yaml"] = GROUP.format(configuration=configuration, group=group, tasks=listed)
    return {**made, "kgprobe_rows.py": LOADER}

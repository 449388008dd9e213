"""BEAR sets as tasks of lm-evaluation-harness, over the parquet of `huggingface` (bear.md, 10.2).

For causal models. With an empty context the harness conditions on its prefix token (BOS, else
EOS), so its `acc` (mean over templates) compares with BOS policy `forced`.
"""

from kgprobe.tables.exports.huggingface import FILE

TASK = """\
# {configuration} for lm-evaluation-harness. Paths are relative: run it in this folder, with
#   lm_eval --include_path . --tasks {task} --model hf --model_args pretrained=...
# One row is one instance under one template, all with the same number of rows, so that acc is the
# mean over templates. Causal models only.
task: {task}
dataset_path: parquet
dataset_kwargs:
  data_files:
    test: {configuration}/{file}
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


def task(configuration: str) -> tuple[str, str]:
    """File name and YAML text of the task `kgprobe_{configuration}`."""
    name = f"kgprobe_{configuration}"
    text = TASK.format(configuration=configuration, task=name, file=FILE)
    return f"{name}.yaml", text

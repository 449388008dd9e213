# Questions about prompts that are written, searched or trained: sections of the config, rows of the
# sheet, files of outcomes and sweeps.


def prompt_section(wildcards):
    """The settings of a search on this benchmark and model."""
    own = asdict(SETTINGS.autoprompt)
    return prompt_settings.section(own, wildcards.benchmark, wildcards.model)


def prompt_sweep(wildcards):
    """The settings of a sweep on this benchmark and model."""
    own = asdict(SETTINGS.autoprompt)
    return prompt_settings.sweep(
        own, wildcards.method, wildcards.benchmark, wildcards.model
    )


def sentence_settings(wildcards):
    """The settings of relation extraction, with the perturbation that the mode has."""
    own = SETTINGS.prompt_tasks.sentences
    mode = SETTINGS.autoprompt.mode
    perturbed = prompt_settings.point("perturbed", own.perturbed, mode)
    return asdict(replace(own, perturbed=perturbed))


def predicted():
    """The file with the outcomes of every row that predicts; one file may hold several rows."""
    return [answers_of(row) for row in by_method("predict", "autoprompt")]


def written_prompts(wildcards):
    """The prompts without training that the sheet asks of a model on a benchmark."""
    return [
        row["prompt"]
        for row in by_method("predict", "autoprompt")
        if (row["benchmark"], row["model"]) == (wildcards.benchmark, wildcards.model)
        and row["prompt"] in prompt_settings.WRITTEN
    ]


def found_prompts(wildcards):
    """The searched prompts that some written one is made of."""
    if not set(written_prompts(wildcards)) & set(prompt_settings.OF_SEARCHED):
        return []
    return f"<results>/prompts/searched/{wildcards.benchmark}/{wildcards.model}"


def other_prompts(wildcards):
    """The searched prompts of the model that prompts are transferred from."""
    if "transferred" not in written_prompts(wildcards):
        return []
    chosen = SETTINGS.autoprompt.transfer
    if wildcards.model not in chosen:
        raise WorkflowError(
            f"{SETTINGS.sheets.experiments}: prompt transferred for {wildcards.model!r}: name "
            "in autoprompt.transfer the model that its prompts come from"
        )
    return f"<results>/prompts/searched/{wildcards.benchmark}/{chosen[wildcards.model]}"


def prompt_wordings(benchmark, prompts):
    """Folders of published wordings that some prompts of a benchmark need."""
    asked, needed = set(prompts), {*prompt_settings.OF_WORDINGS}
    # LPAQA words LAMA's relations; other tasks have what the model proposes, and the manual prompt
    if benchmark.startswith("auto_lama"):
        needed |= {*prompt_settings.OF_PROPOSALS}
    made = lama("lpaqa") if asked & needed else []
    return made + (lama("autoprompt_published") if "published" in asked else [])


def searched_folders():
    """Folders of prompt files, for every searched row of the sheet."""
    return [
        f"<results>/prompts/{row['prompt']}/{row['benchmark']}/{row['model']}"
        for row in by_method("predict", "autoprompt")
        if row["prompt"] in prompt_settings.SEARCHED
    ]


def sweep_rows():
    """Rows of the sheet that sweep over settings."""
    return [*by_method("low_data", "autoprompt"), *by_method("grid", "autoprompt")]


def pulls_facts():
    """Whether facts to search with come out of our own pulls."""
    return SETTINGS.prompt_tasks.facts.search == "pulls"


def token_models():
    """The models whose tokenizers choose facts, as far as an answer depends on them."""
    chosen = SETTINGS.prompt_tasks.facts.single_token_for
    if unknown := [name for name in chosen if name not in MODELS]:
        raise WorkflowError(
            f"config: prompt_tasks.facts.single_token_for: unknown model {', '.join(unknown)}; "
            f"legal: {', '.join(sorted(MODELS))}"
        )
    return [of_model(SimpleNamespace(model=name)) for name in chosen]

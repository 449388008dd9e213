# Questions about OntoProbe's sets: what is asked of them, with which prompts, and their tables.


def shipped_split():
    """The released files that say which premises were memorised, where they are asked for."""
    is_asked = switches("mc_split")["mc_split"] == "shipped"
    on_release = any(row["benchmark"] == "onto_released" for row in by_method("choice"))
    return released("ontoprobe", "gpt/reasoning") if is_asked and on_release else []


def onto_beside():
    """RESULTS of every run that stands beside this one, in the config's order."""
    return [
        f"{folder}/tables/ontoprobe.parquet"
        for folder in files(SETTINGS.ontoprobe.beside.values())
    ]


def onto_rows():
    """Rows whose memorising answers OntoProbe's tables show, then those that a row of reasoning
    needs beside it: they say which of its premises the model has memorised."""
    asked = [
        row
        for row in probes(paper="ontoprobe")
        if row["method"].split("-")[0] in ("cloze", "sentence", "soft")
        and not in_form(row)
    ]
    known = {(row["benchmark"], row["method"], row["model"]) for row in asked}
    return asked + [
        {**row, "prompt": prompt, "method": method}
        for row in by_method("reason", "ontoprobe")
        for first, prompt, method in (
            ("manual", "templates", "cloze"),
            ("soft", "soft", "soft"),
        )
        if first in {s.split("+")[0] for s in schemes_of(row)}
        and MODELS[row["model"]]["kind"] in sheets.KINDS_OF_METHOD[method]
        and (row["benchmark"], method, row["model"]) not in known
    ]


def onto_answers():
    """The file of answers of every one of these rows, in their order."""
    return [answers_of(row) for row in onto_rows()]


def onto_sets():
    """The OntoProbe sets that are asked, and the whole set of every lite one."""
    asked = [row["benchmark"] for row in onto_rows()]
    asked += [row["benchmark"] for row in by_method("reason", "ontoprobe")]
    return list(dict.fromkeys([*(b.removesuffix("_lite") for b in asked), *asked]))


def schemes_of(row):
    """Templates and conjunctions under which the model of a row reasons."""
    soft = SETTINGS.ontoprobe.soft
    is_causal = MODELS[row["model"]]["kind"] == "causal"
    return soft.causal.schemes if is_causal else soft.schemes


def prompted(row):
    """The folder of soft prompts that a row needs; reasoning needs one for soft templates."""
    is_soft = any(s.startswith("soft+") for s in schemes_of(row))
    if row["method"] == "soft" or is_soft:
        return made(row, "soft_prompts")["prompts"]
    return ""

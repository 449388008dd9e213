# What every model is asked: the parts of its two stages. `prompts` is what is searched or trained
# with it, `probes` is what it answers.

#: method (a module of probes/jobs/methods) -> the files of answers that it makes
MADE = {
    "sentence": {
        "scores": "<results>/scores/{benchmark}/{prompt}/{method}/{model}.parquet"
    },
    "contentless": {
        "contentless": "<results>/scores/{benchmark}/{prompt}/{method}/{model}.parquet"
    },
    "fill": {
        "fills": "<results>/fills/{benchmark}/{prompt}/{model}.parquet",
        "golds": "<results>/fills/{benchmark}/{prompt}/{model}.golds.parquet",
    },
    "choice": {
        "chosen": "<results>/choices/{benchmark}/{prompt}/{model}.parquet",
        "options": "<results>/choices/{benchmark}/{prompt}/{model}.options.parquet",
    },
    "cloze": {
        "ranks": "<results>/ranks/{benchmark}/templates/{model}.parquet",
        "top": "<results>/ranks/{benchmark}/templates/{model}.top.parquet",
    },
    "soft": {
        "ranks": "<results>/ranks/{benchmark}/soft/{model}.parquet",
        "curves": "<results>/ranks/{benchmark}/soft/{model}.curves.parquet",
    },
    "reason": {
        "ranks": "<results>/ranks/{benchmark}/reason/{model}.parquet",
        "premises": "<results>/ranks/{benchmark}/reason/{model}.premise.parquet",
        "forms": "<results>/ranks/{benchmark}/reason/{model}.forms.parquet",
    },
    "predict": {"outcomes": "<results>/outcomes/{benchmark}/prompts/{model}.parquet"},
    "soft_prompts": {"prompts": "<results>/prompts/soft/{benchmark}/{model}"},
    "searched": {
        "prompts": "<results>/prompts/{prompt}/{benchmark}/{model}",
        "outcomes": "<results>/outcomes/{benchmark}/{prompt}/{model}.parquet",
    },
    "trained": {"outcomes": "<results>/outcomes/{benchmark}/{prompt}/{model}.parquet"},
    "sweep": {
        "sweep": "<results>/sweeps/{method}/{benchmark}/{prompt}/{model}.parquet"
    },
}
#: what is left out of a floor's questions (methods/floor.py) -> the folder of its answers
FLOORS = dict(zip(WITHOUT, ("no_subject", "twin"), strict=True))
#: methods of the first stage
PREPARED = ("soft_prompts", "searched", "trained", "sweep")


def method_of(row):
    """The module that answers a row of the sheet; of a floor with that whose questions it has."""
    if row.get("without"):
        return f"floor-{method_of({**row, 'without': ''})}"
    method = row["method"].split("-")[0]
    if method in ("low_data", "grid"):
        return "sweep"
    if method != "predict" or row["prompt"] in prompt_settings.WRITTEN:
        return method
    return "searched" if row["prompt"] in prompt_settings.SEARCHED else "trained"


def made(row, method=""):
    """The files of answers of a row of the sheet by name; one file may hold several rows."""
    found = MADE[method or method_of(row).rpartition("-")[2]]
    files = {name: pattern.format(**row) for name, pattern in found.items()}
    if without := row.get("without"):
        below = f"<results>/floors/{FLOORS[without]}"
        files = {n: path.replace("<results>", below) for n, path in files.items()}
    return files


def answers_of(row):
    """The file with what was answered in a row of the sheet."""
    found = made(row)
    return found.get("outcomes") or next(iter(found.values()))


def behind(row):
    """Rows of the first stage that a row needs, whether the sheet has them or not."""
    method, found = method_of(row), []
    if method == "soft" or (method == "reason" and prompted(row)):
        found.append({**row, "prompt": "soft", "method": "soft_prompts"})
    if method == "predict":
        written = SimpleNamespace(**row)
        for folder in (found_prompts(written), other_prompts(written)):
            if folder:
                found.append(
                    {**row, "prompt": "searched", "model": folder.rpartition("/")[2]}
                )
    return found


def beside(row):
    """Rows that are asked with a row: the options of whole sentences after contentless subjects, and
    its floors. No table of the inferences and forms of asking has either."""
    if row["model"] in INFERRED or in_form(row):
        return []
    found = [{**row, "without": without} for without in floors(row)]
    if method_of(row) == "sentence":
        name = row["method"].replace("sentence", "contentless", 1)
        found.insert(0, {**row, "method": name})
    return found


def beside_of(rows, method="contentless"):
    """The files of what stands beside those of some rows that are asked whole sentences."""
    asked = [one for row in rows for one in beside(row)]
    return [answers_of(one) for one in asked if method_of(one) == method]


def floor_rows(rows):
    """The floors of some rows, each a row with what it is asked without."""
    return [one for row in rows for one in beside(row) if one.get("without")]


def floors(row):
    """What a row is asked without, so that nothing can be known. A server's answers cost money.
    Sentences whose options are shared have no subject to leave out: CONTENTLESS has it for all.
    Random weights write one of tens of thousands of tokens into a blank, so that they never are
    right: no twin fills. Soft prompts, premises and choices have no floor, nor have searched
    prompts, whose controls are prompts of their own."""
    method, task = method_of(row), prompt_settings.task(row["benchmark"])
    if row["paper"] == "bear":
        most = SETTINGS.twin.items
    else:
        most = SETTINGS.twin.rows
    is_fact = row["prompt"] == "manual" and task == "facts"
    is_asked = (
        method in ("sentence", "cloze", "fill") or method == "predict" and is_fact
    )
    if not most or not is_asked or MODELS[row["model"]]["kind"] == "api":
        return []
    is_shared = method == "sentence" and row["paper"] != "attributes"
    is_random = method != "fill" and has_twin(row)
    return [*["the subject"] * (not is_shared), *["trained weights"] * is_random]


def in_form(row):
    """Whether a row puts a text around its templates (probes/jobs/forms.py, steps.py)."""
    return row["prompt"] in (*sheets.FORMS, sheets.STEPS)


def form_rows(paper):
    """Rows of a paper that put a text around their templates, in the sheet's order."""
    return list(filter(in_form, probes(paper=paper)))


def formed(row):
    """(files, settings) of a form: a lite set has its examples from the whole one, graph attributes
    have them from the facts of their graph."""
    chosen, name = SETTINGS.forms, row["prompt"]
    told, files = {"name": name, "items": chosen.items, "seed": SETTINGS.seed}, {}
    if name.startswith("few"):
        told["demonstrations"] = chosen.demonstrations
        whole = row["benchmark"].removesuffix("_lite")
        if whole != row["benchmark"]:
            folder = f"<results>/benchmarks/{whole}"
            files["training"] = f"{folder}/items.parquet"
            files["training_options"] = f"{folder}/candidates.parquet"
        if row["paper"] == "attributes":
            files["facts"] = attribute_facts()[0]
    return files, told


def has_twin(row):
    """Whether a model of random weights stands below a row. The checkpoints of a training would all
    have the same one; weights that are stored in few bits cannot be drawn anew.
    """
    model, twin = MODELS[row["model"]], SETTINGS.twin
    is_plain = not any(model.get(name) for name in ("step", "quantised"))
    is_small = int(model.get("parameters") or 0) <= twin.largest
    return bool(is_plain and is_small)


def floor_settings(row):
    """What a floor is told beside what its method is told."""
    is_bear = row["paper"] == "bear"
    return {
        "without": row["without"],
        "items": SETTINGS.twin.items if is_bear else SETTINGS.twin.rows,
        # OntoProbe lays down the last one beforehand
        "template": "last" if row["paper"] == "ontoprobe" else "first",
        "whole": row["paper"] == "attributes",
        "seed": SETTINGS.seed,
    }


def asked_with(row):
    """(files, settings) of a row: what its method reads, and what is told to it."""
    if row.get("without"):
        files, told = asked_with({**row, "without": ""})
        if "draws" in told:
            told |= {"prompts": [row["prompt"]]}
            files |= {"found": "", "other": "", "wordings": []}
        return files, told | floor_settings(row)
    method, own = method_of(row), SimpleNamespace(**row)
    tables = ("questions", "items"), ("candidates",) * 2, ("prompts",) * 2
    if method in ("predict", *PREPARED[1:]):
        files = {
            name: f"<results>/benchmarks/{row['benchmark']}/{name}.{end}"
            for name, end in (
                ("examples", "parquet"),
                ("vocabulary", "json"),
                ("task", "json"),
            )
        }
    else:
        files = {
            name: f"<results>/benchmarks/{row['benchmark']}/{table}.parquet"
            for name, table in tables
        }
    auto, seed = SETTINGS.autoprompt, SETTINGS.seed
    if method == "contentless":
        return files, {"method": row["method"]}
    if method == "sentence":
        told = {"method": row["method"]}
        if in_form(row):
            more, told["form"] = formed(row)
            files |= more
        return files, told
    if row["prompt"] == sheets.STEPS:
        return files, {"steps": SETTINGS.forms.tokens}
    if method == "fill":
        told = {"fill": asdict(SETTINGS.fill), "few": few_prompts(own), "seed": seed}
        if in_form(row):
            more, told["form"] = formed(row)
            files |= more
        return files, told
    if method == "choice":
        files = {
            "questions": f"<results>/benchmarks/{row['benchmark']}/choices.parquet"
        }
        return files, {"ways": SETTINGS.choice.ways}
    if method == "cloze":
        return files, switches("candidate_space", "unknown_candidates")
    if method in ("soft_prompts", "soft", "reason"):
        del files["prompts"]
        told = {"switches": switches()}
        if method == "reason":
            place = f"<results>/benchmarks/{row['benchmark']}/reasoning.parquet"
            files |= {"questions": place, "prompts": prompted(row)}
            told |= {"premises": asdict(SETTINGS.ontoprobe.premises), "seed": seed}
        if method == "soft":
            return (
                files | {"prompts": prompted(row)},
                told | {"rows": SETTINGS.ontoprobe.soft.rows},
            )
        return files, told | {"soft": asdict(SETTINGS.ontoprobe.soft)}
    told = {"section": prompt_section(own), "mode": auto.mode, "seed": seed}
    if method == "sweep":
        return files, told | {"section": prompt_sweep(own), "sweep": row["method"]}
    if method == "trained":
        return files, told | {"training": getattr(auto.trained, row["prompt"])}
    if method == "predict":
        files |= {
            "found": found_prompts(own) or "",
            "other": other_prompts(own) or "",
            "wordings": prompt_wordings(row["benchmark"], written_prompts(own)),
        }
        told |= {
            "prompts": written_prompts(own),
            "published": auto.published.get(row["model"], ""),
            "draws": auto.draws,
        }
    if method == "searched":
        files |= {"wordings": prompt_wordings(row["benchmark"], [row["prompt"]])}
        told |= {"edits": asdict(auto.edits)}
    more = {"demos": asdict(auto.demos), "proposals": asdict(auto.proposals)}
    return files, told | more


def part_of(row):
    """What a row asks, as plain values; paths as the rules have them."""
    files, told = asked_with(row)
    method = method_of(row)
    return {
        "method": method,
        "benchmark": row["benchmark"],
        "prompt": "prompts" if method.endswith("predict") else row["prompt"],
        "input": files,
        "output": made(row),
        "settings": told,
    }


def stages():
    """(stage, model) -> the parts that the model is asked in it, each once."""
    found = {}
    for row in [*EXPERIMENTS, *onto_rows(), *inferred_rows()]:
        for one in [*behind(row), row, *beside(row)]:
            stage = "prompts" if method_of(one) in PREPARED else "probes"
            own = found.setdefault((stage, one["model"]), {})
            part = part_of(one)
            own[next(iter(part["output"].values()))] = part
    return {key: list(parts.values()) for key, parts in found.items()}


def paths_of(parts, which):
    """All files of the input or output of some parts, each once; folders are marked as such."""
    found = {}
    for part in parts:
        for value in part[which].values():
            for path in [value] if isinstance(value, str) else value:
                is_folder = which == "output" and not path.endswith(".parquet")
                found[path] = directory(path) if is_folder else path
    return [path for name, path in found.items() if name]


def plain(parts):
    """Parts with the folder of this run in their paths."""
    text = json.dumps(parts).replace("<results>", RESULTS)
    return json.loads(text)


def threads_of(stage, model):
    """Threads of a job: two where a model answers on a processor, so that no core waits while the
    last model answers. A control model is done soon; an accelerator, a server and a model that is
    spread over devices work with one process."""
    row = MODELS[model]
    is_control = row["source"].startswith("control:")
    is_elsewhere = row["kind"] == "api" or row.get("device_map")
    on_device = accelerators(SimpleNamespace(model=model))
    return 1 if stage != "probes" or is_control or is_elsewhere or on_device else 2


def memory_of(parts, model):
    """MB that the greatest of some parts asks for, once for each thread: each is a process."""
    found = [memory()]
    if any(part["settings"].get("without") == "trained weights" for part in parts):
        found.append(memory(copies=2, exact=True))
    if any(part["method"] in ("trained", "sweep") for part in parts):
        found.append(memory(copies=4, least=6000))
    own = max(needed(SimpleNamespace(model=model)) for needed in found)
    return lambda wildcards, threads: own * threads

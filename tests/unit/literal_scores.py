"""Scores of the tokens of one sentence by the whole model: no padding, batches or shared prefix."""

import numpy as np
import torch


def log_softmax(loaded, ids, **more):
    """Return log-probabilities at every position of one row, from a pass of the whole model."""
    row = torch.tensor([list(map(int, ids))])
    with torch.inference_mode():
        if loaded.spec.model == "mamba":
            # transformers rounds Mamba's logits to float32, whatever the weights are
            logits = loaded.model.lm_head(loaded.model.backbone(row).last_hidden_state)
        else:
            options = {} if loaded.spec.kind == "masked" else {"use_cache": False}
            logits = loaded.model(input_ids=row, **options, **more).logits
    return logits[0].log_softmax(-1)


def row_sum(model, ids):
    """Return the sum of a causal model's log-probabilities of a row's tokens after the first."""
    with torch.inference_mode():
        logp = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
    return sum(logp[i, token].item() for i, token in enumerate(ids[1:]))


def answer_tokens(filled, offsets):
    """Return the tokens that overlap the answer with more than leading white space."""
    low, high = filled.answer[0]
    return [
        i
        for i, (a, b) in enumerate(offsets)
        if any(low <= c < high and filled.text[a : c + 1].strip() for c in range(a, b))
    ]


def masked(loaded, filled):
    """Score each token with it and the later tokens of its word masked; NaN for special tokens."""
    tok = loaded.tokenizer
    enc = tok(filled.text, return_special_tokens_mask=True)
    ids, words = enc["input_ids"], enc.word_ids(0)
    values = np.full(len(ids), np.nan)
    for place, special in enumerate(enc["special_tokens_mask"]):
        if not special:
            later = {i for i in range(place, len(ids)) if words[i] == words[place]}
            row = [tok.mask_token_id if i in later else token for i, token in enumerate(ids)]
            values[place] = log_softmax(loaded, row)[place, ids[place]].item()
    return values


def causal(loaded, filled):
    """Score each token after those before it; NaN for the first, which has no context."""
    prefix = [1] if loaded.spec.bos == "forced" else []
    ids = prefix + loaded.tokenizer(filled.text, add_special_tokens=False)["input_ids"]
    logp = log_softmax(loaded, ids)
    return np.array([np.nan, *(logp[i - 1, ids[i]].item() for i in range(1, len(ids)))])


def slot_of(loaded):
    """Return the id of the sentinel; for a tokenizer without, of the mask token."""
    opening = loaded.tokenizer.convert_tokens_to_ids("<extra_id_0>")
    known = opening not in (None, loaded.tokenizer.unk_token_id)
    return opening if known else loaded.tokenizer.mask_token_id


def seq2seq(loaded, filled):
    """Score the answer decoded after its sentinel; without sentinels, in the whole sentence.

    NaN for the other tokens; None if the answer has no token of its own.
    """
    tok, slot = loaded.tokenizer, slot_of(loaded)
    start = loaded.model.config.decoder_start_token_id
    enc = tok(filled.text, return_offsets_mapping=True)
    ids, own = enc["input_ids"], answer_tokens(filled, enc["offset_mapping"])
    if not own:
        return None
    # the space before an answer is its own, also as a token, and with it the spaces inside
    first, spans = own[0], enc["offset_mapping"]
    while first and not (text := filled.text[slice(*spans[first - 1])]).strip() and text:
        first -= 1
        if spans[first][0] < filled.answer[0][0]:
            break
    inner = range(first, own[-1] + 1)
    context = [*ids[:first], slot, *ids[own[-1] + 1 :]]
    if slot == tok.mask_token_id:
        forced, read = [start, *ids], inner
    else:
        forced, read = [start, slot, *(ids[i] for i in inner)], range(1, 1 + len(inner))
    logp = log_softmax(loaded, context, decoder_input_ids=torch.tensor([forced]))
    values = np.full(len(ids), np.nan)
    values[list(inner)] = [logp[j, ids[i]].item() for j, i in zip(read, inner, strict=True)]
    return values


LITERAL = {"masked": masked, "causal": causal, "seq2seq": seq2seq}


def token_scores(loaded, filled):
    """Return the score of each token of a sentence, NaN where a token is not scored."""
    return LITERAL[loaded.spec.kind](loaded, filled)


def cloze(loaded, question, label, masks):
    """Return the scores of a candidate's tokens in the slot of a question, one candidate a pass."""
    tok = loaded.tokenizer
    tokens = tok(label, add_special_tokens=False)["input_ids"]
    if loaded.spec.kind == "masked":
        whole = tok(question.before + "<mask>" + question.after)["input_ids"]
        place = whole.index(tok.mask_token_id)
        slot = [tok.mask_token_id] * (len(tokens) if masks == "multi" else 1)
        logp = log_softmax(loaded, [*whole[:place], *slot, *whole[place + 1 :]])
        at = [place + min(j, len(slot) - 1) for j in range(len(tokens))]
        return [logp[p, t].item() for p, t in zip(at, tokens, strict=True)]
    front, back = (
        tok(text, add_special_tokens=False)["input_ids"]
        for text in (question.before.rstrip(), question.after)
    )
    context, start = [*front, slot_of(loaded), *back, 2], loaded.model.config.decoder_start_token_id
    parts = []
    for j, token in enumerate(tokens):
        forced = torch.tensor([[start, slot_of(loaded), *(tokens[:j] if masks == "multi" else [])]])
        parts.append(log_softmax(loaded, context, decoder_input_ids=forced)[-1, token].item())
    return parts

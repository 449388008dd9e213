"""The trigger search as a literal loop: one prompt at a time, full logits, all gradients.

It shares only the encoding of prompts, the filter and the sampling with the fast search.
"""

import numpy as np
import torch


def prompts(split, trigger):
    return split.encoded.filled(trigger)


def logprobs(loaded, row, place):
    """Return log-probabilities of the whole vocabulary at the answer position, with autograd."""
    return loaded.model(torch.from_numpy(row)[None]).logits.log_softmax(-1)[0, place]


def likelihood(problem, found, right):
    return found[torch.from_numpy(problem.labels[right][problem.known[right]])].logsumexp(0)


def correct(problem, found, right):
    if not problem.closed:
        return float(int(found.argmax()) == problem.labels[right][0])
    classes = [
        float(found[torch.from_numpy(problem.labels[c][problem.known[c]])].logsumexp(0))
        for c in range(len(problem.classes))
    ]
    return float(int(np.argmax(classes)) == right)


def value(loaded, problem, split, number, trigger, metric):
    row = prompts(split, trigger)[number]
    with torch.no_grad():
        found = logprobs(loaded, row, split.encoded.places[number])
    right = int(split.right[number])
    if metric == "accuracy":
        return correct(problem, found, right)
    return float(likelihood(problem, found, right))


def gradient(loaded, problem, batches, trigger):
    """Return d loss / d word embeddings at the trigger positions, by a full backward()."""
    split = problem.train
    embedding = loaded.model.get_input_embeddings()
    for parameter in loaded.model.parameters():
        parameter.requires_grad_(True)
    kept = []
    handle = embedding.register_forward_hook(
        lambda module, given, output: (output.retain_grad(), kept.append(output))[0]
    )
    total = np.zeros((len(trigger), embedding.weight.shape[1]))
    for batch in batches:
        for number in batch:
            loaded.model.zero_grad()
            kept.clear()
            row = prompts(split, trigger)[number]
            found = logprobs(loaded, row, split.encoded.places[number])
            loss = -likelihood(problem, found, int(split.right[number]))
            loss.backward()
            at = split.encoded.triggers[number]
            total += kept[0].grad[0, at].double().numpy() / len(batch) / len(batches)
    handle.remove()
    loaded.model.zero_grad()
    for parameter in loaded.model.parameters():
        parameter.requires_grad_(False)
    return total


def search(loaded, problem, settings, kept, initial, seed, blank):
    """Return (visits, best dev trigger, last trigger); a visit records everything an iteration saw.

    It scores the current trigger again in every iteration.
    """
    draws = np.random.default_rng(seed)
    trigger, best, visits = list(initial), None, []
    everything = range(len(problem.dev))

    def dev(trigger):
        values = [
            value(loaded, problem, problem.dev, i, trigger, settings.dev_metric) for i in everything
        ]
        return sum(values) / len(values)

    if not settings.fill_all:
        best = (dev(trigger), list(trigger))
    n, size = len(problem.train), settings.accumulate * settings.batch
    fresh = settings.batches == "fresh"
    for _ in range(settings.iterations):
        order = draws.permutation(n)
        if fresh:
            first, second = order[:size], draws.permutation(n)[: settings.evaluation or size]
        else:
            first = order[: min(size, n // 2)]
            second = order[len(first) :][: settings.evaluation or size]
        batches = [first[i : i + settings.batch] for i in range(0, len(first), settings.batch)]
        found = gradient(loaded, problem, batches, trigger)
        place = int(draws.integers(len(trigger)))
        weight = loaded.model.get_input_embeddings().weight
        scores = (weight @ torch.from_numpy(-found[place]).to(weight.dtype)).double().numpy()
        scores = np.where(kept, scores, -np.inf)
        tokens = sorted(range(len(scores)), key=lambda t: (-scores[t], t))[: settings.candidates]

        def summed(ids, second=second):
            return sum(
                value(loaded, problem, problem.train, i, ids, settings.metric) for i in second
            )

        swapped = [[*trigger[:place], t, *trigger[place + 1 :]] for t in tokens]
        sums = [summed(ids) for ids in swapped]
        current = summed(trigger)
        if settings.fill_all and blank in trigger:
            current = -np.inf
        arg = max(range(len(sums)), key=lambda i: (sums[i], -i))
        accepted = settings.accept == "best_of_k" or sums[arg] > current
        if accepted:
            trigger = swapped[arg]
            if not (settings.fill_all and blank in trigger):
                score = dev(trigger)
                if best is None or score > best[0]:
                    best = (score, list(trigger))
        visits.append((place, tokens, sums, current, arg, accepted, list(trigger), list(second)))
    return visits, best, trigger

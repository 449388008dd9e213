"""Scores of every token before a scorer sums them."""

from unittest import mock

from kgprobe.probes.scoring.sentence import score, scorers


def scored_tokens(*arguments, **options):
    """Return `score.score` of a shard; sentence, id, role of all tokens; scores of some."""
    seen, add_up = [], scorers._aggregate

    def watching(*of_tokens):
        seen.append(of_tokens)
        return add_up(*of_tokens)

    with mock.patch.object(scorers, "_aggregate", watching):
        found = score.score(*arguments, **options)
    ((sentences, values, scored),) = seen
    tokens = sentences.tokens
    return found, {
        "sentence": tokens.owners, "id": tokens.values, "role": sentences.roles,
        "scored": scored, "score": values,
    }  # fmt: skip

"""Normalize labels to one line, with single spaces only between words.

No-break spaces, line breaks and other Unicode whitespace count as spaces; a blank label is null.
"""

import polars as pl

#: Regular expression for the whitespace at which `str.split` splits.
BLANKS = r"[\s\x1c-\x1f]+"


def one_line(text: str) -> str:
    """Return a text with one space between words and no space around them.

    >>> one_line(" New\\u00a0York\\n")
    'New York'
    """
    return " ".join(text.split())


def one_line_of(column: str) -> pl.Expr:
    """Apply `one_line` to a column; null if nothing is left."""
    text = pl.col(column).str.replace_all(BLANKS, " ").str.strip_chars(" ")
    return pl.when(text != "").then(text).alias(column)

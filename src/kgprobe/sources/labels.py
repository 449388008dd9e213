"""Labels as every reader gives them: one line, blanks only between words.

No-break spaces, line ends and other blanks of Unicode count as blanks; a label of blanks is none.
"""

import polars as pl

#: What `str.split` takes for a blank, in the engine's words.
BLANKS = r"[\s\x1c-\x1f]+"


def one_line(text: str) -> str:
    """A text with one blank between its words and none around them.

    >>> one_line(" New\\u00a0York\\n")
    'New York'
    """
    return " ".join(text.split())


def one_line_of(column: str) -> pl.Expr:
    """The same of a column; null where nothing is left."""
    text = pl.col(column).str.replace_all(BLANKS, " ").str.strip_chars(" ")
    return pl.when(text != "").then(text).alias(column)

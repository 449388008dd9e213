"""A figure as the report takes it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Drawing:
    """A figure: which part of the report it belongs to, its title, what it shows, its SVG text.

    `part`: "calibration", or the name of a benchmark or chapter. `alt` says in words what can be
    seen.
    """

    part: str
    name: str
    title: str
    caption: str
    svg: str
    alt: str = ""

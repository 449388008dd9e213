"""The content of a report page under each of its headings."""

from html.parser import HTMLParser

LEVELS = {"h1": 1, "h2": 2, "h3": 3, "summary": 4, "h4": 5}
#: elements that count as content: rows of tables, figures, terms and lists of files
CONTENT = {"tr", "svg", "dd", "li"}


class Outline(HTMLParser):
    """Parser for headings in order, each with the number of content elements under it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.headings: list[list] = []  # [level, text, things under it]
        self.tables: list[int] = []  # rows of the body of every table
        self._inside, self._body = "", False
        self._folded: dict = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if tag == "details":
            self._folded = dict(attrs)
        elif tag == "summary" and self._folded.get("class") == "notes":
            pass  # sentences, which are no separate part
        elif tag in LEVELS:
            # a section that is folded is a section
            is_section = tag == "summary" and self._folded.get("class") == "section"
            self.headings.append([2 if is_section else LEVELS[tag], "", 0])
            self._inside = tag
        elif tag == "table":
            self.tables.append(0)
        elif tag == "tbody":
            self._body = True
        elif tag in CONTENT and (tag != "tr" or self._body):
            self.tables[-1:] = [self.tables[-1] + 1] if tag == "tr" else self.tables[-1:]
            self._count()

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag == self._inside else self._inside
        self._body = self._body and tag != "tbody"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.headings[-1][1] += data

    def _count(self) -> None:
        """Count one more element under the last heading and its parent headings."""
        level = 9
        for heading in reversed(self.headings):
            if heading[0] < level:
                heading[2] += 1
                level = heading[0]

    def texts(self, level: int) -> list[str]:
        """Return the headings of a level."""
        return [text.strip() for found, text, _ in self.headings if found == level]


def hollow(html: str) -> list[str]:
    """Return headings without content, and tables without rows."""
    found = Outline(html)
    bare = [text.strip() for _, text, things in found.headings if not things]
    return bare + [f"table {n}" for n, rows in enumerate(found.tables, 1) if not rows]

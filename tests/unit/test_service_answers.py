"""Classification of query service answers: time-out, rate limit, refusal, broken, ok."""

from pathlib import Path

import pytest

from kgprobe.sources.sparql import answers
from kgprobe.sources.sparql.answers import Answer, check_answer, check_status
from kgprobe.sources.sparql.endpoint import Endpoint, Policy
from kgprobe.sources.sparql.pull import pull

PLACE = "wdqs (https://query.example.org), query facts.rq, page 1"
AGENT = "kgprobe/1 (https://example.org) requests/2"
JSON, TEXT = "application/sparql-results+json", "text/plain"
QUERY = "SPARQL-QUERY: queryStr=SELECT ?s { VALUES ?s { " + "wd:Q42 " * 9000 + "} }\n"
BLAZEGRAPH = (
    "java.util.concurrent.TimeoutException\n"
    "\tat java.util.concurrent.FutureTask.get(FutureTask.java:205)\n"
    "\tat com.bigdata.rdf.sail.webapp.BigdataServlet.submitApiTask(BigdataServlet.java:292)\n"
)
DEADLINE = (
    "java.util.concurrent.ExecutionException: org.openrdf.query.QueryEvaluationException: "
    "com.bigdata.bop.engine.QueryTimeoutException: Query deadline is expired.\n"
)
QLEVER = (
    '{"exception":"Operation timed out. Last operation: Join on ?subject","query":"SELECT",'
    '"resultsize":0,"status":"ERROR","time":{"computeResult":30001,"total":30001}}'
)
VIRTUOSO = "Virtuoso S1T00 Error SR171: Transaction timed out\n\nSPARQL query:\nSELECT ?s {}"
COST = (
    "Virtuoso 42000 Error The estimated execution time 7531 (sec) exceeds the limit of 1500 "
    "(sec).\n\nSPARQL query:\nSELECT ?s {}"
)
GATEWAY = "<html><head><title>504 Gateway Time-out</title></head><body>nginx</body></html>"
BINDINGS = '{"head":{"vars":["s"]},"results":{"bindings":[%s]}}'
POLICY = "Please set a user-agent and respect our robot policy https://w.wiki/4wJS.\n"


def answer(status: int, body: str, kind: str = TEXT, **headers: str) -> Answer:
    return Answer(status, {"content-type": kind, **headers}, body.encode())


def meaning(came: Answer) -> type[answers.SourceError] | None:
    """Return the class of the error that an answer raises."""
    try:
        check_status(came, PLACE, AGENT)
        check_answer(came, PLACE, ["s"])
    except answers.SourceError as error:
        return type(error)
    return None


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (500, QUERY + BLAZEGRAPH, TEXT),
        (500, QUERY + DEADLINE, TEXT),
        (200, '{"head":{"vars":["s"]},"results":{"bindings":[{"s":' + BLAZEGRAPH, JSON),
        (200, '{"head":{"vars":["s"]},"results":{"bindings":[]}}\n' + DEADLINE, JSON),
        (200, QUERY + BLAZEGRAPH, TEXT),
        (429, QLEVER, "application/json"),
        (500, QLEVER, "application/json"),
        (200, QLEVER, "application/json"),
        (500, VIRTUOSO, TEXT),
        (500, COST, TEXT),
        (504, GATEWAY, "text/html"),
        (504, "", ""),
        (408, "", ""),
        (503, "Query timed out", TEXT),
        (503, "QueryInterruptedException: Query evaluation took too long", TEXT),
        (200, '{"head":{"vars":["s"]},"The SPARQL operation has been cancelled', JSON),
        (429, '{"exception":"Cancelled because it exceeded the time limit"}', JSON),
        (500, "org.openrdf.query.QueryInterruptedException", TEXT),
        (500, "Virtuoso S1TAT Error RC...: query interrupted by result timeout.", TEXT),
        (500, '{"message":"Query exceeded time limit of 5 min","code":"QE0PE1"}', JSON),
        (500, '{"code":"TimeLimitExceededException"}', JSON),
        (500, "Operation terminated (deadline exceeded)", TEXT),
        (500, "QUERY TIMEOUT", TEXT),
        (500, "Query was cancelled: maximum execution time exceeded", TEXT),
        (503, "<title>503 first byte timeout</title>", "text/html"),
    ],
)
def test_a_time_out_is_recognized_in_every_form(status, body, kind):
    assert meaning(answer(status, body, kind)) is answers.TimedOut


def test_a_time_out_message_shows_its_line_and_not_the_query():
    with pytest.raises(answers.TimedOut) as caught:
        check_status(answer(500, QUERY + DEADLINE), PLACE, AGENT)
    assert "Query deadline is expired" in caught.value.came
    assert "wd:Q42" not in caught.value.came


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (403, POLICY, TEXT),
        (403, "<html><title>Forbidden</title></html>", "text/html"),
        (401, "", ""),
        (429, "Too many requests. Please follow our User-Agent policy: https://w.wiki/4wJS", TEXT),
        (200, POLICY, TEXT),
        (200, "<html><body>Your User Agent names no contact</body></html>", "text/html"),
        (400, "Scripts need a descriptive useragent with contact information", TEXT),
    ],
)
def test_a_refusal_names_the_setting_at_once(status, body, kind):
    with pytest.raises(answers.EndpointRefused) as caught:
        check_status(answer(status, body, kind), PLACE, AGENT)
    message = str(caught.value)
    assert not caught.value.reaction, "nothing to try again"
    assert all(word in message for word in ("`contact`", "KGPROBE_CONTACT", AGENT))
    assert "run again" not in message


@pytest.mark.parametrize(
    ("status", "body", "kind", "cause"),
    [
        (429, "Too Many Requests - Please retry in 35 seconds.", TEXT, answers.RateLimited),
        (429, '{"exception":"Too many queries at a time"}', JSON, answers.RateLimited),
        (429, "Rate limit exceeded at this time", TEXT, answers.RateLimited),
        (500, '{"exception":"Tried to allocate 2 GB, but only 1 GB were available"}', JSON,
         answers.PartialAnswer),
        (500, "Insufficient free Heap Memory 512Mb for group by", TEXT, answers.PartialAnswer),
        (200, "<title>Sign in</title><script>setTimeout(f, 9)</script>", "text/html",
         answers.ServerTrouble),
        (500, "NullPointerException", TEXT, answers.ServerTrouble),
        (502, "<title>502 Bad Gateway</title>", "text/html", answers.ServerTrouble),
        (500, "Virtuoso 37000 Error SP030: SPARQL compiler", TEXT, answers.QueryRejected),
        (400, "MalformedQueryException", TEXT, answers.QueryRejected),
        (404, "", "", answers.NoService),
        (521, "<title>Web server is down</title>", "text/html", answers.ServerTrouble),
        (206, "{}", JSON, answers.PartialAnswer),
        (200, "<title>Maintenance</title>", "text/html", answers.ServerTrouble),
        (200, '{"head":{"vars":["s"]},"results":{"bin', JSON, answers.PartialAnswer),
        (200, BINDINGS % "", JSON, None),
        (200, BINDINGS % '{"s":{"type":"literal","value":"TimeoutException, or: the user agent '
         'timed out"}}', JSON, None),
        *((200, BINDINGS % f'{{"s":{cell}}}', JSON, answers.MalformedAnswer) for cell in (
            '{"type":"literal","value":"a","xml:lang":5}', '{"type":["uri"],"value":"a"}',
            '{"type":"literal","value":"a","datatype":[]}', '{"type":"uri"}', "null",
        )),
    ],
)  # fmt: skip
def test_other_errors_are_unchanged(status, body, kind, cause):
    assert meaning(answer(status, body, kind)) is cause


def test_a_capped_answer_is_asked_for_less_at_once_and_the_page_says_so():
    """The cap is no error of the service, unlike rows that end because its time is over."""
    for header, reaction, words in (
        ("x-sparql-maxrows", "smaller now", "asks for less at once"),
        ("x-sql-state", "smaller", "waits, asks for less"),
    ):
        with pytest.raises(answers.PartialAnswer) as caught:
            check_status(answer(200, "{}", JSON, **{header: "10000"}), PLACE, AGENT)
        assert caught.value.reaction == reaction
        page = Path(__file__).parents[2] / "docs/sources.md"
        (row,) = (line for line in page.read_text().splitlines() if f"`{header}`" in line.lower())
        assert row.endswith(f"| {words} |")


def test_a_page_reached_by_a_redirect_is_reported():
    came = Answer(200, {"content-type": "text/html"}, b"<title>Sign in</title>", "https://sso/in")
    with pytest.raises(answers.ServerTrouble, match=r"text/html, of https://sso/in: Sign in"):
        check_status(came, PLACE, AGENT)


def test_instances_of_another_class_are_no_answer(tmp_path, monkeypatch):
    """A proxy's answer to the same page of another class has as many rows as its own count says."""
    dbo, name = "http://dbpedia.org/ontology/", "http://dbpedia.org/resource/A"
    cells = {"class": f"{dbo}Person", "instance": name}
    row = ",".join(f'"{n}":{{"type":"uri","value":"{value}"}}' for n, value in cells.items())
    one = '{"rows":{"type":"literal","value":"1"}}'

    def ask(endpoint: Endpoint, text: str, agent: str, place: str) -> Answer:
        names, rows = '"rows"', one
        if "UNION" in text:
            names, rows = '"rows","class","instance","label"', f"{one},{{{row}}}"
        return answer(
            200, f'{{"head":{{"vars":[{names}]}},"results":{{"bindings":[{rows}]}}}}', JSON
        )

    monkeypatch.setattr("kgprobe.sources.sparql.pull.ask", ask)
    query = Path(__file__).parents[2] / "resources/queries/dbpedia/instances.rq"
    endpoint = Endpoint("local", "http://127.0.0.1:9/sparql", Policy(attempts=1))
    with pytest.raises(answers.MalformedAnswer, match=r"only \?class that this page asked for"):
        pull(query, endpoint, tmp_path / "other", {"class": "Publisher"})
    assert pull(query, endpoint, tmp_path / "same", {"class": "Person"}).frame().height == 1

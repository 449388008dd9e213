"""One request over HTTP: built by SPARQLWrapper, sent by http.py, whose timeouts it cannot set.

SPARQLWrapper knows one timeout for everything and loses the headers of failed answers; here an
answer of any status is returned as it came. Nothing is retried here.
"""

import socket
import urllib.request
from typing import Any

import requests
import urllib3

from kgprobe.http import Line, NoAnswerError, Patience, describe, whole_body
from kgprobe.sources.sparql.answers import Answer
from kgprobe.sources.sparql.endpoint import Endpoint
from kgprobe.sources.sparql.errors import AGAIN, Place, ServerTrouble, SourceError, TimedOut

#: Bytes that a packed answer may unpack to; a page of 5,000 rows has a few 10^6.
UNPACKED = 1 << 28
#: Bytes that are read of an error's body.
TOLD = 1 << 20


def ask(endpoint: Endpoint, text: str, agent: str, place: Place) -> Answer:
    """Send `text` by POST and return the answer, whatever its status.

    Raises ServerTrouble when the connection fails or the body is shorter than announced, TimedOut
    when the read timeout or the deadline of the whole answer passes.
    """
    request, policy = _request(endpoint, text, agent), endpoint.policy
    patience = Patience(policy.connect, policy.read, policy.deadline)
    sent = {name.title(): value for name, value in request.header_items()}
    try:
        with (
            Line(direct=endpoint.is_local) as line,
            line.opened(
                "POST", request.full_url, patience, data=request.data, headers=sent
            ) as answer,
        ):
            good = answer.status_code < 300
            body = whole_body(answer, UNPACKED) if good else _error_body(answer)
            headers = {name.lower(): value for name, value in answer.headers.items()}
            return Answer(answer.status_code, headers, body, answer.url)
    except NoAnswerError as error:
        raise _trouble(error.reason, endpoint, place) from error


def _error_body(answer: requests.Response) -> bytes:
    """The beginning of an error's body; it is for the message only, so a cut one will do."""
    try:
        return bytes(answer.raw.read(TOLD, decode_content=True))
    except urllib3.exceptions.HTTPError:
        return b""


def _trouble(reason: BaseException, endpoint: Endpoint, place: Place) -> SourceError:
    policy = endpoint.policy
    if isinstance(reason, TimeoutError):
        return TimedOut(
            place,
            f"{reason}: connect timeout {policy.connect:g} s, read timeout {policy.read:g} s, "
            f"deadline {policy.deadline:g} s",
            "a whole answer in time",
            AGAIN,
        )
    refused = isinstance(reason, ConnectionRefusedError | socket.gaierror)
    return ServerTrouble(
        place,
        describe(reason),
        "an answer over HTTP",
        f"is {endpoint.url} right, and is the server up?" if refused else AGAIN,
    )


def _request(endpoint: Endpoint, text: str, agent: str) -> urllib.request.Request:
    """What SPARQLWrapper would send. Imported late: it takes longer than everything else here."""
    import SPARQLWrapper

    class Wrapper(SPARQLWrapper.SPARQLWrapper):
        def request(self) -> Any:
            return self._createRequest()

    wrapper = Wrapper(endpoint.url, agent=agent)
    wrapper.setMethod(SPARQLWrapper.POST)
    wrapper.setRequestMethod(SPARQLWrapper.URLENCODED)
    wrapper.setReturnFormat(SPARQLWrapper.JSON)
    wrapper.setOnlyConneg(True)
    wrapper.addCustomHttpHeader("Accept", "application/sparql-results+json")
    wrapper.addCustomHttpHeader("Accept-Encoding", "gzip")
    if endpoint.policy.server_timeout_ms:
        wrapper.addParameter("timeout", str(endpoint.policy.server_timeout_ms))
    wrapper.setQuery(text)
    request: urllib.request.Request = wrapper.request()
    return request

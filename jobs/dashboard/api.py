"""What pages ask for, as JSON: what there is at each address below /api/ is in `routes`.

Each answer has an ETag: a page that asks again with it gets 304 and no body as long as the answer is the same. What is no fault of the
page, such as a lakehouse that is not there yet, is an answer too: {"problem": "a sentence"}.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any, Final

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jobs.answers import questions
from jobs.answers.ask import MOST_ROWS
from jobs.answers.duckdb_views import QuestionReader
from jobs.answers.formats import for_browser
from jobs.answers.report import read_overview
from jobs.common.errors import LakehouseError, UserError
from jobs.common.stores import Place
from jobs.common.text import printable
from jobs.common.times import EPOCH, LATEST_MS
from jobs.dashboard.first_page import attention, first_page, scope_of
from jobs.dashboard.group_page import group_page, rebalance_page
from jobs.dashboard.queries import MOST, QUERIES, answer, evidence, rows_of
from jobs.dashboard.store import Reply, Store
from jobs.health import reading, verdict

_AT_ONCE: Final = 2  # threads: the tables are read by one at a time anyway
_FORMS: Final = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
_TEXT_CHARS: Final = 100_000  # of a name in an address

Params = Mapping[str, str]


def routes(store: Store) -> list[Route]:
    """The addresses of the API over one lakehouse."""

    def version(_: Request) -> Response:
        numbers = {name: number for name, (_, number) in store.versions().items()}
        return _sent(Reply(for_browser({"version": store.version(), "tables": numbers})), "")

    answers: dict[str, Callable[[Store, Params, str], Reply]] = {
        "/api/ask/{name}": _ask,
        "/api/rows/{name}": _rows,
        **{f"/api/{name}": partial(_page, page=name) for name in _PAGES},
        "/api/evidence/{name}": lambda its, _, name: its.reply(("evidence", name), lambda _reader: evidence(its.folder, name)),
        "/api/health": lambda its, _given, _name: Reply(for_browser(_health(its.folder, time.time_ns() // 1_000_000))),
        "/api/questions": lambda _store, _given, _name: Reply(for_browser(_questions())),
        **{f"/api/export/{{name}}.{form}": partial(_export, form=form) for form in _FORMS},
    }
    limiter = CapacityLimiter(_AT_ONCE)
    return [Route("/api/version", version), *(Route(path, _endpoint(store, answer, limiter)) for path, answer in answers.items())]


def _endpoint(store: Store, answer: Callable[[Store, Params, str], Reply], limiter: CapacityLimiter) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        try:
            given = _given(request)
            reply = await to_thread.run_sync(answer, store, given, request.path_params.get("name", ""), limiter=limiter)
        except LakehouseError as error:
            reply = Reply(for_browser({"problem": printable(str(error), 600)}))
        except UserError as error:
            return Response(for_browser({"problem": printable(str(error), 600)}), 400, media_type="application/json")
        return _sent(reply, request.headers.get("if-none-match", ""))

    return endpoint


def _given(request: Request) -> Params:
    """The values of the address that are there."""
    given = {name: value for name, value in request.query_params.items() if value}
    if any(len(value) > _TEXT_CHARS for value in given.values()):
        raise UserError("a value of the address is too long")
    return given


def _sent(reply: Reply, known: str) -> Response:
    headers = {"ETag": reply.etag}
    if known == reply.etag:
        return Response(status_code=304, headers=headers)
    if reply.file:
        headers["Content-Disposition"] = f'attachment; filename="{reply.file}"'
    return Response(reply.body, media_type=_FORMS[reply.file.rpartition(".")[2] or "json"], headers=headers)


def _ask(store: Store, given: Params, name: str) -> Reply:
    questions.load(name)
    return store.reply(("ask", name, *sorted(given.items())), lambda reader: answer(reader, name, given))


def _export(store: Store, given: Params, name: str, *, form: str) -> Reply:
    """An answer as a file, with the same values as /api/ask."""
    return Reply(store.export(name, given, form).encode(), f"{name}.{form}")


_PAGES: Final[Mapping[str, Callable[[QuestionReader, Params], Any]]] = {
    "attention": lambda reader, given: attention(read_overview(reader, scope_of(given))),
    "overview": lambda reader, given: first_page(reader, read_overview(reader, scope_of(given))),
    "group": lambda reader, given: group_page(reader, _needed(given, "cluster"), _needed(given, "group")),
    "rebalance": lambda reader, given: rebalance_page(reader, _needed(given, "id")),
}


def _page(store: Store, given: Params, _: str, *, page: str) -> Reply:
    return store.reply((page, *sorted(given.items())), lambda reader: _PAGES[page](reader, given))


def _rows(store: Store, given: Params, name: str) -> Reply:
    if name not in QUERIES:
        raise UserError(f"no rows named {printable(name, 60)}: there are {', '.join(QUERIES)}")
    values: dict[str, Any] = {
        "since": EPOCH + timedelta(milliseconds=_number(given, "since", 0)),
        "until": EPOCH + timedelta(milliseconds=_number(given, "until", LATEST_MS)),
        "limit": max(1, min(_number(given, "limit", MOST), MOST_ROWS)),
        **{wanted: _needed(given, wanted) for wanted in ("cluster", "group", "id") if f"${wanted}" in QUERIES[name]},
    }
    return store.reply(("rows", name, *sorted(values.items())), lambda reader: rows_of(reader, name, **values))


def _needed(given: Params, name: str) -> str:
    if name not in given:
        raise UserError(f"this needs {name}")
    return given[name]


def _number(given: Params, name: str, default: int) -> int:
    text = given.get(name, "")
    if text and not (text.isdecimal() and text.isascii() and len(text) <= 15 and int(text) <= LATEST_MS):
        raise UserError(f"{name}: must be whole milliseconds since 1970, not {printable(text, 40)}")
    return int(text) if text else default


def _questions() -> list[dict[str, Any]]:
    """All questions: what each asks, answers and takes."""
    return [
        {**asdict(one), "often": one.name in questions.FIFTEEN, "parameters": [_parameter(each) for each in one.parameters]}
        for one in map(questions.load, questions.names())
    ]


def _parameter(one: questions.Parameter) -> dict[str, Any]:
    return {**asdict(one), "choices": one.choices, "option": one.name in questions.OPTIONS}


def _health(lakehouse: Place, now_ms: int) -> dict[str, Any]:
    """The verdict of `rebalance health`. `now_ms`: this machine's clock."""
    limits = verdict.Limits()
    try:
        seen = reading.read(lakehouse, now_ms)
        problems = verdict.problems(seen, limits)
    except LakehouseError as error:
        return {"ok": None, "summary": printable(str(error), 600), "problems": []}
    return {
        "ok": not problems,
        "running": seen.running,
        "summary": "" if problems else reading.summary(seen, limits),
        "problems": [asdict(problem) for problem in problems],
    }

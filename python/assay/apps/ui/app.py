"""The pages and what they ask for. Everything is read; nothing is started but what `assay ui` was allowed to start."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from assay.apps.ui.asking import AnswerStream, Asking
from assay.apps.ui.guard import REPORT_POLICY, START_BYTES_MAX
from assay.apps.ui.heat import HeatQuestion, heat_of
from assay.apps.ui.levels import HistoryLevels
from assay.apps.ui.lines import FiguresOverTime, FiguresQuestion, PageQuestion, SeriesCatalogue, parse_question
from assay.apps.ui.metrics import CONTENT_TYPE, MetricSample, exposed, live_samples, run_samples
from assay.apps.ui.recordings import catalogue_of, lines_of
from assay.apps.ui.runs import REPORTS, RunPlace, RunRow, Runs, live_of, stamp_of
from assay.apps.ui.start_form import StartSettings, WrongForm
from assay.apps.ui.starts import StartRefused, Starts
from assay.apps.ui.watch import Events, RunsWatch, bounded
from assay.base.errors import AssayError
from assay.base.paths import plain
from assay.record.flight import has_recording
from assay.record.folder import Folder
from assay.record.kept_file import NOTHING, file_stamp

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
}
REPORT_BYTES_MAX = 256 * 2**20
CHUNK_BYTES = 2**18
SHOWN_MAX = 100
CONTRACT_NAME = "contract.toml"
CONTRACT_EVERY_S = 600
"""A contract is judged again after so long: the day that goes on is read for it."""

Handler = Callable[[Request], Awaitable[Response]]


class Pages:
    """What the server answers.

    Parameters
    ----------
    runs
        The runs that are shown.
    is_over
        Whether the server ends.
    starts
        Starts runs; None where that is not allowed.
    """

    def __init__(self, runs: Runs, is_over: Callable[[], bool], starts: Starts | None = None) -> None:
        self._starts = starts
        self._runs, self._asking, self._watch = runs, Asking(), RunsWatch(runs, is_over)
        self._levels = HistoryLevels(self._asking)
        self._files = {
            f"/static/{path.relative_to(STATIC)}": path for path in sorted(STATIC.rglob("*")) if path.suffix in TYPES
        }

    def app(self) -> Starlette:
        """The application; who may ask is decided before it (`assay.apps.ui.guard`)."""
        ask = [
            Route(f"/api/runs/{{run_id}}/{kind}", _taking(self._asked(kind)), methods=["GET"])
            for kind in ("view", "findings", "matrix")
        ]
        return Starlette(
            routes=[
                Route("/", self._page, methods=["GET"]),
                Route("/api/runs", _taking(self._list), methods=["GET"]),
                Route("/api/events", _taking(self._events, "run"), methods=["GET"]),
                Route("/api/histories", _taking(self._histories), methods=["GET"]),
                Route("/api/start", _taking(self._start), methods=["GET"]),
                Route("/api/start/rehearse", _taking(self._rehearse), methods=["POST"]),
                Route("/api/start/confirm", _taking(self._confirm), methods=["POST"]),
                Route("/metrics", _taking(self._metrics), methods=["GET"]),
                Route("/api/compare", _taking(self._compare, "a", "b"), methods=["GET"]),
                Route("/api/runs/{run_id}/live", _taking(self._live), methods=["GET"]),
                Route("/api/runs/{run_id}/contract", _taking(self._contract), methods=["GET"]),
                Route("/api/runs/{run_id}/heat", _taking(self._heat, "q"), methods=["GET"]),
                Route("/api/runs/{run_id}/series", _taking(self._series, "q"), methods=["GET"]),
                *ask,
                Route("/runs/{run_id}/points.csv", _taking(self._table), methods=["GET"]),
                Route("/runs/{run_id}/now.html", _taking(self._report_now), methods=["GET"]),
                Route("/runs/{run_id}/{name}", _taking(self._report), methods=["GET"]),
                Route("/compare.html", _taking(self._comparison_page, "a", "b"), methods=["GET"]),
                Route("/{path:path}", self._file, methods=["GET"]),
            ]
        )

    async def _page(self, request: Request) -> Response:
        del request
        return _file_response(self._files["/static/index.html"])

    async def _file(self, request: Request) -> Response:
        """A file of the page; only names that are known lead to one."""
        path = self._files.get(request.url.path)
        return _file_response(path) if path is not None else _missing("There is no such page.")

    async def _list(self, request: Request) -> Response:
        del request
        return JSONResponse({"runs": await run_in_threadpool(self._runs.rows), "folders": self._runs.folders})

    async def _events(self, request: Request) -> Response:
        return Events(self._watch, request.query_params.get("run"))

    def _place(self, request: Request) -> RunPlace | None:
        return self._runs.find(str(request.path_params["run_id"]))

    async def _live(self, request: Request) -> Response:
        place = self._place(request)
        if place is None:
            return _gone()
        return JSONResponse({"row": self._runs.row(place), "live": bounded(live_of(place.path))})

    def _asked(self, kind: str) -> Handler:
        async def answer(request: Request) -> Response:
            place = self._place(request)
            if place is None:
                return _gone()
            return self._answered(kind, {"path": str(place.path)}, stamp_of(place.path)[:2])

        return answer

    async def _series(self, request: Request) -> Response:
        place = self._place(request)
        if place is None:
            return _gone()
        text = request.query_params.get("q")
        try:
            # Refused before a process is made of it.
            question = parse_question(FiguresQuestion, text) if text is not None else None
            if has_recording(place.path):
                return JSONResponse(await run_in_threadpool(_recorded, place.path, question))
        except AssayError as error:
            return _wrong(str(error))
        asked: PageQuestion = {"question": question.asked()} if question is not None else {}
        return self._answered("series", {**asked, "path": str(place.path)}, stamp_of(place.path)[:2])

    async def _heat(self, request: Request) -> Response:
        """A heat map of latency of a recording."""
        place = self._place(request)
        if place is None:
            return _gone()
        try:
            question = parse_question(HeatQuestion, request.query_params.get("q", ""))
            if not has_recording(place.path):
                return _missing("This run holds no recording.")
            return JSONResponse(await run_in_threadpool(heat_of, place.path, question))
        except AssayError as error:
            return _wrong(str(error))

    async def _contract(self, request: Request) -> Response:
        """A recording's contract this month, null where none lies in it; one answer serves all pages for a while."""
        place = self._place(request)
        if place is None:
            return _gone()
        stamp = await run_in_threadpool(file_stamp, place.path / CONTRACT_NAME)
        if stamp == NOTHING or not has_recording(place.path):
            return JSONResponse(None)
        return self._answered("contract", {"path": str(place.path)}, f"{stamp} {int(time.time() // CONTRACT_EVERY_S)}")

    async def _histories(self, request: Request) -> Response:
        """All targets over time; one answer for all pages until a run's files change."""
        del request
        return self._answered("histories", *await run_in_threadpool(self._measured))

    def _measured(self) -> tuple[PageQuestion, str]:
        """Every run that measured something, and the state of its files."""
        places = self._runs.measured()
        state = hashlib.sha256(repr([(place.id, stamp_of(place.path)[:2]) for place in places]).encode())
        return {"paths": [str(place.path) for place in places]}, state.hexdigest()

    async def _metrics(self, request: Request) -> Response:
        """What Prometheus reads; histories come from a process of their own, and from before while it works."""
        del request
        rows = await run_in_threadpool(self._runs.rows)
        told = exposed([*run_samples(rows), *await run_in_threadpool(self._live_samples, rows)])
        told += await self._levels.text(*await run_in_threadpool(self._measured))
        return Response(told, headers={"content-type": CONTENT_TYPE})

    def _live_samples(self, rows: Sequence[RunRow]) -> list[MetricSample]:
        known = {place.id: place for place in self._runs.places()}
        live = [(row, known[row["id"]]) for row in rows if row["live"] and row["id"] in known]
        return [one for row, place in live for one in live_samples(row, bounded(live_of(place.path)))]

    async def _start(self, request: Request) -> Response:
        """What may be started, and the run that was started last."""
        del request
        if self._starts is None:
            return JSONResponse({"allowed": False})
        shown = await run_in_threadpool(self._starts.shown)
        if (started := shown["started"]) is not None:
            started["run"] = await run_in_threadpool(self._runs.of_process, started["process"], started["started_s"])
        return JSONResponse(shown)

    async def _rehearse(self, request: Request) -> Response:
        """The dry run of a filled form."""
        if self._starts is None:
            return _missing("Nothing is started from here.")
        try:
            return JSONResponse(await self._starts.rehearse(await _sent(request)))
        except WrongForm as error:
            return _wrong(str(error))

    async def _confirm(self, request: Request) -> Response:
        """Start what was rehearsed, once."""
        if self._starts is None:
            return _missing("Nothing is started from here.")
        sent = await _sent(request)
        number = sent.get("confirm") if isinstance(sent, dict) and len(sent) == 1 else None
        try:
            # In this thread: two requests at once are one after the other.
            return JSONResponse(self._starts.confirm(number))
        except StartRefused as error:
            return JSONResponse({"error": str(error)}, status_code=409)

    async def _compare(self, request: Request) -> Response:
        places = self._two(request)
        if places is None:
            return _gone()
        paths = [str(place.path) for place in places]
        return self._answered("compare", {"paths": paths}, [stamp_of(place.path)[:2] for place in places])

    async def _comparison_page(self, request: Request) -> Response:
        places = self._two(request)
        if places is None:
            return _gone()
        paths = [str(place.path) for place in places]
        state = [stamp_of(place.path)[:2] for place in places]
        return self._answered("comparison_page", {"paths": paths}, state, media_type=TYPES[".html"])

    def _two(self, request: Request) -> list[RunPlace] | None:
        found = [self._runs.find(request.query_params.get(name, "")) for name in ("a", "b")]
        places = [place for place in found if place is not None]
        return places if len(places) == len(found) else None

    async def _table(self, request: Request) -> Response:
        place = self._place(request)
        if place is None:
            return _gone()
        return self._answered(
            "table", {"path": str(place.path)}, stamp_of(place.path)[:2], media_type="text/csv; charset=utf-8"
        )

    async def _report_now(self, request: Request) -> Response:
        """The report of a run as it stands, which lies in no folder."""
        place = self._place(request)
        if place is None:
            return _gone()
        state = stamp_of(place.path)[:2]
        return self._answered("report", {"path": str(place.path)}, state, media_type=TYPES[".html"])

    async def _report(self, request: Request) -> Response:
        """A report that lies in a run; it is a file from anywhere."""
        place, name = self._place(request), str(request.path_params["name"])
        if place is None or name not in REPORTS:
            return _gone()
        try:
            descriptor = _opened(place.path, name)
        except OSError:
            return _gone()
        headers = {"content-security-policy": REPORT_POLICY}
        if name.endswith(".pdf"):
            # A browser's own viewer does not open in a sandbox.
            headers["content-disposition"] = f'attachment; filename="{name}"'
        return StreamingResponse(_pieces(descriptor), media_type=TYPES[Path(name).suffix], headers=headers)

    def _answered(
        self, kind: str, asked: PageQuestion, state: object, *, media_type: str = "application/json"
    ) -> Response:
        policy = {"content-security-policy": REPORT_POLICY} if media_type == TYPES[".html"] else {}
        return AnswerStream(self._asking, kind, asked, repr(state), {"content-type": media_type, **policy})


def _taking(handler: Handler, *names: str) -> Handler:
    """What answers a request that has these parameters, each once, and no other."""

    async def answer(request: Request) -> Response:
        given = [name for name, _ in request.query_params.multi_items()]
        wrong = next((name for name in given if name not in names or given.count(name) > 1), None)
        if wrong is not None:
            accepted = f"accepted: {', '.join(names)}, each once" if names else "nothing is asked for here"
            return _wrong(f"{plain(wrong)[:SHOWN_MAX]}: {accepted}")
        return await handler(request)

    return answer


async def _sent(request: Request) -> object:
    """The JSON of a request, whose size was checked; None where it is none."""
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > START_BYTES_MAX:
            return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _recorded(path: Path, question: FiguresQuestion | None) -> SeriesCatalogue | FiguresOverTime:
    return catalogue_of(path) if question is None else lines_of(path, question)


def _opened(path: Path, name: str) -> int:
    folder = Folder.open(path)
    try:
        descriptor = folder.open_regular(name)
    finally:
        folder.close()
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_size > REPORT_BYTES_MAX:
        os.close(descriptor)
        raise OSError(f"{name}: is not read")
    return descriptor


async def _pieces(descriptor: int) -> AsyncIterator[bytes]:
    with os.fdopen(descriptor, "rb") as file:
        while piece := await run_in_threadpool(file.read, CHUNK_BYTES):
            yield piece


def _file_response(path: Path) -> Response:
    return Response(path.read_bytes(), media_type=TYPES[path.suffix])


def _wrong(text: str) -> Response:
    return JSONResponse({"error": text}, status_code=422)


def _missing(text: str) -> Response:
    return JSONResponse({"error": text}, status_code=404)


def _gone() -> Response:
    return _missing("This run is not there, or there no more.")


class Served(NamedTuple):
    """The application over folders of runs, what it knows of them, and what it may start."""

    app: Starlette
    runs: Runs
    starts: Starts | None


def pages(roots: Sequence[Path], is_over: Callable[[], bool], allowed: StartSettings | None = None) -> Served:
    """The application over folders of runs.

    Parameters
    ----------
    roots
        Folders that hold runs, or are one.
    is_over
        Whether the server ends.
    allowed
        What may be started; nothing unless given.
    """
    runs = Runs(roots)
    starts = Starts(allowed, roots, goes_on=runs.measures) if allowed is not None else None
    return Served(Pages(runs, is_over, starts).app(), runs, starts)

"""The live display of a terminal: what its lines say, how little is sent, and that a resize leaves nothing behind."""

from __future__ import annotations

import io

from assay.apps.cli.live_frame import BARS_ASCII, Piece, Screen, frame, screen_of, sparkline
from assay.base.progress import Gauge, Moment, NearestLimit, OnCurve, Status


class Terminal(io.StringIO):
    """A stream that is a terminal and keeps what it is sent."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True

    def taken(self) -> str:
        sent = self.getvalue()
        self.seek(0)
        self.truncate()
        return sent


class Window:
    """A window whose size changes, and a clock."""

    def __init__(self, columns: int, rows: int = 24) -> None:
        self.size = (columns, rows)
        self.now_s = 0.0
        self.stream = Terminal()
        self.screen = Screen(self.stream, colour=False, size=lambda: self.size, clock_s=lambda: self.now_s)


def status(**changed: object) -> Status:
    moment = Moment(
        part="oltp",
        what="8 KiB random 70/30, queue depth 8",
        phase="measuring",
        left_s=12.0,
        is_most=True,
        gauges=(
            Gauge(name="iops", title="IOPS", value=12_345.0, unit="iops"),
            Gauge(name="read", title="read latency", value=1_230_000.0, unit="ns", limit="read.mean"),
        ),
        errors=(3, "errors"),
    )
    made: dict[str, object] = {
        "moment": moment,
        "times_utc_ns": (1, 2, 3),
        "histories": {"iops": (1.0, 2.0, 4.0), "read": (None, 1e6, 1.2e6)},
        "nearest": NearestLimit(
            limit="read.mean<=2ms", scope="data", value=1.9e6, unit="ns", share=0.95, where="p0002", met=True
        ),
        "curve": (
            OnCurve(point_id="p0001", load=8, value=5_000, met=True),
            OnCurve(point_id="p0002", load=16, value=9_000, met=True),
            OnCurve(point_id="p0003", load=32, value=9_100, met=False),
        ),
        "axis": "outstanding",
        "figure": ("IOPS", "iops"),
        "host_cpu_share": 0.23,
        "devices": (("vda", 0.97), ("vdb", 0.12)),
        "done": 3,
    }
    return Status(**(made | changed))  # type: ignore[arg-type]


def texts(lines: list) -> list[str]:
    return ["".join(piece.text for piece in line).rstrip() for line in lines]


def test_the_frame_says_how_the_run_stands() -> None:
    shown = texts(frame(status(), 100))

    assert shown == [
        "[oltp] measuring, at most 12 s left  8 KiB random 70/30, queue depth 8",
        "IOPS                       12,345  ▃▅█",
        "read latency              1.23 ms   ▇█",
        "nearest limit         read.mean<=2ms: data 1.90 ms, 95% of it, met  (p0002)",
        "host                  CPU 23%, vda 97% busy, vdb 12% busy",
        "curve so far          ▅██  9,100 IOPS at 32 outstanding, limits missed from 32",
        "errors                3  points done 3",
    ]


def test_no_line_is_wider_than_the_terminal_however_narrow() -> None:
    for width in (1, 5, 30, 60, 200):
        assert all(len(text) <= width for text in texts(frame(status(), width)))


def test_what_names_hold_moves_no_cursor() -> None:
    hostile = Moment(part="\x1b[2J", what="name\nwith\x1b]0;title\x07", phase="measuring", gauges=())
    assert all(letter.isprintable() for text in texts(frame(status(moment=hostile), 120)) for letter in text)


def test_a_terminal_without_unicode_gets_plain_letters() -> None:
    assert sparkline([0.0, 10.0, None, 5.0], BARS_ASCII) == "_# ="
    assert "".join(texts(frame(status(), 100, bars=BARS_ASCII))).isascii()


def test_only_lines_that_changed_are_sent() -> None:
    window = Window(80)
    window.screen.draw(frame(status(), 79))
    first = window.stream.taken()
    window.screen.draw(frame(status(), 79))
    again = window.stream.taken()
    window.screen.draw(frame(status(done=4), 79))
    changed = window.stream.taken()

    assert len(first) > 300
    assert again == "\x1b[7A" + 7 * "\n"
    assert len(changed) < 60
    assert "points done 4" in changed


def test_frames_come_no_more_often_than_twice_a_second() -> None:
    window = Window(80)
    assert window.screen.is_due
    window.screen.draw([[Piece("one")]])
    window.now_s = 0.49
    assert not window.screen.is_due
    window.now_s = 0.5
    assert window.screen.is_due


def test_a_narrower_window_clears_the_rows_that_its_lines_were_wrapped_into() -> None:
    window = Window(80)
    window.screen.draw([[Piece("x" * 60)], [Piece("short")]])
    window.stream.taken()
    window.size = (30, 24)
    window.screen.draw([[Piece("x" * 29)], [Piece("short")]])

    # Sixty letters take two rows of thirty, and the short line one.
    assert window.stream.taken().startswith("\x1b[3A\r\x1b[J")


def test_a_line_that_stays_is_printed_above() -> None:
    window = Window(80)
    window.screen.draw([[Piece("frame")]])
    window.stream.taken()
    window.screen.above("p0001 done")
    assert window.stream.taken() == "\x1b[1A\r\x1b[Jp0001 done\nframe\n"
    window.screen.close()
    assert window.stream.taken() == "\x1b[1A\r\x1b[J"


def test_colours_are_left_out_where_they_are_not_wanted() -> None:
    coloured, plain = Terminal(), Terminal()
    for stream, environment in ((coloured, {"TERM": "xterm"}), (plain, {"TERM": "xterm", "NO_COLOR": "1"})):
        screen = screen_of(stream, environment)
        assert screen is not None
        screen.draw([[Piece("bad", "bad")]])
    assert "\x1b[1;31m" in coloured.getvalue()
    assert "\x1b[" not in plain.getvalue()


def test_what_is_no_terminal_gets_plain_lines() -> None:
    assert screen_of(io.StringIO(), {"TERM": "xterm"}) is None
    assert screen_of(Terminal(), {"TERM": "dumb"}) is None

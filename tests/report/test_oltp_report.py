"""Transactions in the report: how many, how fast, what they cost in storage, whether the data are right."""

from __future__ import annotations

import pytest
from sample import START_NS, row, small
from sample_oltp import TIERS, OltpSample, add_point, conditions, figures, manifest, run, search, settings
from shown import cells, facts_of, items, names, notices, pages, section, table, texts
from test_report_pages import HOSTILE, Page

from assay.document.elements import Document, FigureElement, Paragraph, Table
from assay.document.palette import theme
from assay.document.series import SeriesClock, on_axis, point_clock
from assay.record.source import RunFacts
from assay.report.assemble import assemble
from assay.report.render import render_figures
from assay.workloads.tpcc.application import TPCC
from assay.workloads.transactions.report.timeline import checkpoint_marks, dips, oltp_rows, spans_of, waited_words
from assay.workloads.transactions.shapes import Condition
from assay.workloads.transactions.verdict import consistency_line
from series_rows import series_of

# What comes first


def test_the_summary_says_what_the_database_did(one: Document) -> None:
    assert one.title == "tpcc on db07: hammerdb"
    assert texts(section(one, "summary"))[:4] == [
        "4 of 4 limits met.",
        "What was found",
        "30,898 new orders a minute (NOPM) and 71,777 transactions a minute (TPM) with 32 users and 50 warehouses; "
        "9 of 10 new orders were answered within 41.1 ms [p0001].",
        "All 11 consistency conditions that were checked hold.",
    ]


def test_a_search_tells_its_answer_and_what_ended_it(searched: Document) -> None:
    first = texts(section(searched, "summary"))[2]
    limit = "cpu\N{NO-BREAK SPACE}<\N{NO-BREAK SPACE}80%"
    assert first == "Holds 30,898 NOPM (new orders per minute; 95 % interval 29,971 to 31,516) with 32 users [p0006]."
    knee = "knee (the smallest load with 95 % of the most)"
    told = f"{knee} 20,942 NOPM with 16 users (response p90 30.3 ms); more load misses {limit}"
    # The summary has said what the word means.
    first = first.replace("new orders per minute; ", "")
    assert first.replace("users ", f"users; {told} ") in texts(section(searched, "oltp-search"))


def test_violated_conditions_come_before_everything_else() -> None:
    sample, fields = run()
    fields["oltp"]["conditions"] = conditions(violated=2)
    document = assemble(facts_of((sample, fields)))
    first = section(document, "summary").blocks[0]
    assert isinstance(first, Paragraph)
    assert (first.tone, first.text) == (
        "bad",
        "1 consistency condition is violated, of 11 that were checked: the data are not what the transactions wrote.",
    )
    rows = cells(document, "conditions")
    assert rows[1][2:] == ["100", "2", "✗ violated", "tpcc: w_id 3, d_id 7: 3,412 and 3,411"]
    assert rows[10] == ["11", "applies only after loading", "-", "-", "left out", ""]
    assert len(rows) == 12
    assert "Example" not in [column.title for column in table(assemble(facts_of(run())), "conditions").columns]


def test_conditions_of_several_databases_are_one_row_each() -> None:
    sample, fields = run()
    fields["oltp"]["conditions"] = [*conditions(), *conditions(violated=7, database="other")]
    rows = cells(assemble(facts_of((sample, fields))), "conditions")
    assert len(rows) == 12
    assert rows[6][2:] == ["200", "2", "✗ violated", "other: w_id 3, d_id 7: 3,412 and 3,411"]


def test_figures_are_never_taken_for_published_ones(one: Document) -> None:
    assert any("TPC-C-like" in text and "not comparable" in text for text in notices(one))
    assert any("TPC-C-like" in text and "not comparable" in text for text in texts(section(one, "method")))
    everything = " ".join(text for part in one.sections for text in texts(part))
    assert "tpmC" not in everything


# Transactions


def test_each_transaction_has_its_row(one: Document) -> None:
    rows = cells(one, "transactions")
    assert [row[0] for row in rows] == ["New order", "Payment", "Order status", "Delivery", "Stock level"]
    assert rows[0][1:4] == ["30,898", "515.0", "43.5 %"]
    assert rows[0][9:] == ["309", "7", "0"]
    assert table(one, "transactions").rows[0][10].tone == "warn"


def test_judgements_of_shares_and_responses_have_a_column_of_their_own(one: Document) -> None:
    assert table(one, "transactions").columns[-1].title == "Failed"
    sample, fields = run()
    for oltp in (sample.points[-1]["oltp"], fields["oltp"]):
        oltp["by_transaction"]["new_order"] |= {"pass_mix": False, "pass_latency": True}
        oltp["by_transaction"]["payment"] |= {"pass_mix": True, "pass_latency": True}
    shown = table(assemble(facts_of((sample, fields))), "transactions")
    assert shown.columns[-1].title == "Mix, response"
    assert [row[-1].text for row in shown.rows] == ["mix missed", "both met", "-", "-", "-"]
    assert shown.rows[0][-1].tone == "bad"


def test_a_missed_response_limit_is_marked_where_it_was_missed() -> None:
    sample, fields = run()
    for limit in sample.points[0]["limits"]:
        if limit["scope"] == "delivery":
            limit["met"] = False
    rows = table(assemble(facts_of((sample, fields))), "transactions").rows
    assert [row[6].tone for row in rows] == ["plain", "plain", "plain", "bad", "plain"]
    assert rows[3][5].tone == "plain"


def test_how_the_load_was_made_is_said(one: Document) -> None:
    said = items(one, "oltp-facts")
    assert said["Workload"] == "preset hammerdb, stored procedures, drawn independently, items uniform"
    assert said["Load"] == "32 users, without keying or thinking times"
    assert said["CPU of the load"] == "21.4 us a transaction"
    assert said["Failed"] == "none"
    assert (
        said["Loaded"]
        == "24,950,312 rows (4.936 GiB) at 190,460 rows/s, 2 min 11 s with indexes and writing to storage"
    )


def test_an_open_loop_says_from_when_it_counts() -> None:
    sample = OltpSample(1)
    schedule = {"lag_p99_ns": 2.5e6, "kept_share": 0.9981, "waits": 12}
    point = add_point(sample, 32, rate=500.0, schedule=schedule)
    said = items(assemble(facts_of((sample, manifest(point["oltp"])))), "oltp-facts")
    assert said["Load"] == "500/s poisson, 32 users, in an open loop: latency counts from when a transaction was due"
    assert said["Started on time"] == "99.8 %; p99 late by 2.50 ms"


def test_failures_are_named() -> None:
    sample = OltpSample(1)
    errors = {"count": 3, "kinds": {"deadlock": 2, "other": 1, "connection": 0}, "example": "<b>disk</b> full"}
    point = add_point(sample, 8, errors=errors)
    point["errors"] = {"count": 3, "kinds": errors["kinds"]}
    document = assemble(facts_of((sample, manifest(point["oltp"]))))
    assert items(document, "oltp-facts")["Failed"] == (
        "3 transactions (deadlock 2, other 1); the first other: <b>disk</b> full"
    )
    assert any(text.startswith("Transactions failed in p0001: deadlock 2, other 1") for text in notices(document))


def test_percentiles_finer_than_the_count_are_left_out() -> None:
    sample = OltpSample(1)
    found = figures(1)
    for record in found["by_transaction"].values():
        record["count"] = 150
    point = add_point(sample, 1, by_transaction=found["by_transaction"])
    document = assemble(facts_of((sample, manifest(point["oltp"]))))
    specification = theme(next(figure for figure in document.figures if figure.name == "responses").chart)
    rows = next(iter(specification["datasets"].values()))
    assert {row["percentile"] for row in rows} == {"p50", "p90", "p95", "p99", "max"}


# Time


def test_the_time_axis_has_transactions_above_and_storage_beneath(one: Document) -> None:
    figure = next(figure for figure in one.figures if figure.name == "oltp-timeline")
    assert "transactions/s, new orders (ms, log), device (I/Os per s), device (MiB/s), latency (ms, log)" in (
        figure.alternative
    )
    assert "Dashed lines: a checkpoint began." in figure.caption
    drawing = render_figures(one)["oltp-timeline"]
    for label in ("New order", "Stock level", "vda read", "log flush", "log (server)", "warm-up", "server away"):
        assert f">{label}</text>" in drawing


def test_spans_and_marks_lie_where_they_were() -> None:
    sample, _ = run()
    point, frame = sample.points[0], series_of(sample.series())
    clock = point_clock(point)
    assert clock is not None
    assert (clock.end_s, clock.step_s) == (75.0, 1.0)
    assert spans_of(point, point["oltp"], clock) == [
        {"start_s": 0.0, "end_s": 15.0, "kind": "warm-up", "label": "warm-up"},
        {"start_s": 58.0, "end_s": 63.0, "kind": "away", "label": "server away"},
    ]
    assert checkpoint_marks(frame, clock) == [20.5, 50.5]


def tpm_rows(*values: float | None) -> list[dict[str, object]]:
    return [{"panel": "server TPM", "series": "server", "t_s": at + 0.5, "value": value, "log": False}
            for at, value in enumerate(values)]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "spans"),
    [
        ([100, 102, 98, 60, 55, 60, 101, 99, 100, 103], [(3.0, 6.0)]),
        ([100, 102, 98, 60, 55, 98, 101, 99, 100, 103], []),  # two seconds are too short
        ([100, 100, 100, 97, 97, 97, 100, 100, 100, 100], []),  # 3 % is not worth a mark
        ([100, 130, 70, 80, 120, 75, 72, 71, 110, 128], []),  # no lower than the rate is used to vary
        ([20, 20, 20, 100, 102, 98, 100, 101, 99, 100], []),  # the warm-up
        ([100, 102, 98, 60, None, 60, 101, 99, 100, 103], []),  # not known
        ([None] * 10, []),
    ],
)
def test_dips_of_the_server_are_long_and_deep(values: list[float | None], spans: list[tuple[float, float]]) -> None:
    warmup_s = 3.0 if values[0] == 20 else 0.0
    found = dips(tpm_rows(*values), SeriesClock(0, 10.0, 1.0), warmup_s)
    assert [(span["start_s"], span["end_s"]) for span in found] == spans


def test_transactions_of_the_server_are_commits_and_rollbacks_a_minute() -> None:
    sample, _ = run()
    clock = point_clock(sample.points[0])
    assert clock is not None
    metrics = [("commits_count", 90.0), ("rollbacks_count", 10.0)]
    counted = [row(clock.start_ns + 10**9, "postgresql", "tpcc", metric, value) for metric, value in metrics]
    rows = oltp_rows(on_axis(series_of(counted), clock), clock, TPCC)
    assert [one["value"] for one in rows if one["panel"] == "server TPM"] == [6000.0]


def test_areas_have_a_value_of_every_kind_at_every_step() -> None:
    sample, _ = run()
    clock = point_clock(sample.points[0])
    assert clock is not None
    rows = oltp_rows(on_axis(series_of(sample.series()), clock), clock, TPCC)
    for panel, series in (("transactions/s", 5), ("sessions (%)", 6)):
        own = [row for row in rows if row["panel"] == panel]
        assert len(own) == 75 * series
        assert all(row["value"] is not None for row in own)
    whole = [row["value"] for row in rows if row["panel"] == "sessions (%)" and row["t_s"] == 30.5]
    assert sum(whole) == pytest.approx(100, abs=0.01)


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_devices_of_roles_of_their_own_go_by_their_roles() -> None:
    sample, fields = run()
    rows = [
        {**row, "role": "data" if row["entity"] == "vda" else row["role"]}
        for row in sample.series()
    ]  # fmt: skip
    rows += [{**row, "entity": "vdb", "role": "log"} for row in rows if row["entity"] == "vda"]
    facts = facts_of((sample, fields))
    document = assemble(RunFacts(facts.manifest, facts.points, series_of(rows)))
    drawing = render_figures(document)["oltp-timeline"]
    for label in ("data read", "data write", "log read", "log write"):
        assert f">{label}</text>" in drawing


def test_what_sessions_waited_for_is_told_in_words() -> None:
    sample, fields = run(gap=False)
    facts = facts_of((sample, fields))
    known = RunFacts(facts.manifest, facts.points, series_of(sample.series()))
    said = waited_words(known, facts.points[-1])
    assert said == "what sessions at work did or waited for: running 42 %, log 30 %, other I/O 16 % and row locks 7 %"
    assert waited_words(facts, facts.points[-1]) == ""


def test_a_server_that_checkpoints_all_the_time_shows_the_age_of_its_checkpoint() -> None:
    sample, fields = run()
    rows = [row for row in sample.series() if row["source"] != "postgresql"]
    rows += [{**row, "source": "mariadb", "entity": "tpcc", "metric": "checkpoint_age_bytes", "kind": "gauge",
              "value": 2.0**25} for row in rows if row["metric"] == "user_share"]  # fmt: skip
    facts = facts_of((sample, fields))
    document = assemble(RunFacts(facts.manifest, facts.points, series_of(rows)))
    figure = next(figure for figure in document.figures if figure.name == "oltp-timeline")
    assert "checkpoint age (MiB)" in figure.alternative
    assert "sessions (%)" not in figure.alternative
    assert "Dashed" not in figure.caption


# Storage


def test_what_a_transaction_cost_is_one_sentence(one: Document) -> None:
    said = texts(section(one, "oltp-storage"))
    assert said[0] == (
        "A transaction read 12.79 KiB, wrote 8.789 KiB and caused 4.756 KiB of log, as the server counts; for each, the"
        " devices wrote 930 B beyond that, for other programs and the file system; a flush of the log took 546 us on"
        " average."
    )
    assert "On vda log and data share a device: the latency of the log is what the server itself timed." in said[1]
    assert items(one, "oltp-storage-facts")["Buffer hits"].startswith("98.73 %")
    assert cells(one, "oltp-devices")[0][:4] == ["vda", "data, log", "1,912", "1,314"]


def test_what_other_programs_moved_is_not_the_cost_of_a_transaction() -> None:
    sample, fields = run()
    storage = fields["oltp"]["storage"]
    storage["database"]["read_bytes_per_transaction"] /= 100
    said = texts(section(assemble(facts_of((sample, fields))), "oltp-storage"))[0]
    assert said.startswith(
        "A transaction read 131 B, wrote 8.789 KiB and caused 4.756 KiB of log, as the server counts"
    )
    assert "the devices read 12.67 KiB and wrote 930 B beyond that, for other programs and the file system" in said


def test_without_a_count_of_the_server_the_devices_tell() -> None:
    sample, fields = run()
    fields["oltp"]["storage"]["database"] = None
    said = texts(section(assemble(facts_of((sample, fields))), "oltp-storage"))[0]
    assert said.startswith("A transaction read 12.79 KiB, wrote 14.45 KiB and caused 4.756 KiB of log; a flush")


def test_a_log_that_nobody_times_is_said_to_be_unknown() -> None:
    sample, fields = run()
    fields["oltp"]["storage"]["log_flush_latency_mean_ns"] = None
    said = texts(section(assemble(facts_of((sample, fields))), "oltp-storage"))
    assert "flush of the log" not in said[0]
    assert "the server does not time flushes of its log" in said[1]


def test_a_remote_server_says_whose_figures_they_are() -> None:
    sample, fields = run()
    fields["oltp"]["storage"] |= {"devices": [], "server_cpu_share": None, "bytes_from": "databases"}
    document = assemble(facts_of((sample, fields)))
    assert "what the servers asked of storage" in texts(section(document, "oltp-storage"))[1]
    assert "CPU of the server" not in items(document, "oltp-storage-facts")
    assert not any(isinstance(b, Table) and b.name == "oltp-devices" for b in section(document, "oltp-storage").blocks)


def test_statements_and_tables_show_what_the_server_knows_of_them() -> None:
    sample, fields = run()
    fields["oltp"]["statements"] = [{"database": "tpcc", "text": "CALL p", "calls_count": 4.0, "time_ns": 8e6,
                                     "mean_ns": 2e6, "share": 1.0, "rows_count": 4.0}]  # fmt: skip
    fields["oltp"]["tables"] = [{"database": "tpcc", "table": "stock", "fetched_count": 7.0, "time_ns": 1.0}]
    document = assemble(facts_of((sample, fields)))
    assert [column.title for column in table(document, "statements").columns] == ["Statement", "Calls", "Mean", "Share"]
    assert cells(document, "statements") == [["CALL p", "4", "2.00 ms", "100 %"]]
    assert [column.title for column in table(document, "hot-tables").columns] == ["Table", "Rows fetched"]


def test_settings_of_one_server_stand_in_two_columns_and_of_several_beside_each_other() -> None:
    sample, fields = run()
    alone = cells(assemble(facts_of((sample, fields))), "server-settings")
    assert len(alone) == (len(settings()) + 2) // 2
    assert alone[0][:2] == ["server", "embedded PostgreSQL 18.6"]
    other = {"name": "b", "kind": "mariadb", "version": "10.11.19", "nopm": 3.0, "settings": {"log_bin": "OFF"}}
    fields["oltp"]["databases"] = [*fields["oltp"]["databases"], other]
    rows = cells(assemble(facts_of((sample, fields))), "server-settings")
    assert rows[0] == ["server", "embedded PostgreSQL 18.6", "MariaDB 10.11.19"]
    assert rows[1] == ["NOPM", "30,898", "3"]
    assert ["log_bin", "-", "OFF"] in rows


# Searches and other runs


def test_the_curve_marks_the_answer_and_what_missed(searched: Document) -> None:
    figure = next(figure for figure in searched.figures if figure.name == "oltp-search-1")
    assert figure.alternative.startswith(
        "New orders per minute over users: from 1,963 NOPM at 1 users to 40,533 NOPM at 64"
    )
    drawing = render_figures(searched)["oltp-search-1"]
    assert ">meets the limits</text>" in drawing
    assert ">misses a limit</text>" in drawing


def test_a_load_that_was_measured_again_has_one_place_on_the_line() -> None:
    sample, fields = search()
    again = add_point(sample, 64)
    sample.answers[0]["point_ids"].append(again["id"])
    figure = next(f for f in assemble(facts_of((sample, fields))).figures if f.name == "oltp-search-1")
    datasets = theme(figure.chart)["datasets"].values()
    assert sorted({len(rows) for rows in datasets}) == [7, 8]


def test_ticks_shorter_than_samples_do_not_tear_the_run_over_time() -> None:
    sample, fields = run()
    rows = sample.series()
    fine = [{**row, "interval_ns": 10**8, "t_ns": row["t_ns"] - part * 10**8}
            for row in rows if row["source"] == "tpcc" for part in range(9)]  # fmt: skip
    facts = facts_of((sample, fields))
    frame = series_of([*(row for row in rows if row["source"] != "tpcc"), *fine])
    document = assemble(RunFacts(facts.manifest, facts.points, frame))
    assert texts(section(document, "series"))[0].startswith(
        "From 2026-11-21 10:00:00 UTC, all on one time axis. One value"
    )


def test_a_search_over_rates_has_rates_on_its_axis() -> None:
    document = assemble(facts_of(search("rate")))
    assert ">transactions asked for per second</text>" in render_figures(document)["oltp-search-1"]


def test_a_search_that_found_nothing_says_so() -> None:
    sample, fields = search()
    sample.answers[0] |= {"max": None, "limited_by": "errors", "interval_95": None}
    said = texts(section(assemble(facts_of((sample, fields))), "oltp-search"))[0]
    assert said == "hammerdb: no load that was tried met the limits (transactions failed); the smallest was 64 users."


def test_points_of_transactions_have_a_table_of_their_own(searched: Document) -> None:
    rows = table(searched, "oltp-points").rows
    assert [row[2].text for row in rows] == ["1 user", *(f"{users} users" for users in (2, 4, 8, 16, 32, 64))]
    assert rows[-1][-1].text == "missed: server cpu\N{NO-BREAK SPACE}<\N{NO-BREAK SPACE}80%"
    assert [row[0].anchor for row in rows] == [f"p000{number}" for number in range(1, 8)]
    assert not any(isinstance(b, Table) and b.name == "points-table" for b in section(searched, "points").blocks)


def test_the_sections_stand_in_the_order_a_reader_decides_by(one: Document, searched: Document) -> None:
    assert names(one) == [
        "summary",
        "verdict",
        "oltp",
        "oltp-time",
        "oltp-storage",
        "method",
        "diagnosis",
        "series",
        "points",
    ]
    assert names(searched) == [
        "summary", "verdict", "oltp", "oltp-search", "oltp-time", "oltp-storage", "method", "diagnosis", "series",
        "points",
    ]  # fmt: skip


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_transactions_do_not_disturb_what_the_examination_measured() -> None:
    alone = assemble(facts_of((small(), {})))
    sample = small()
    point = add_point(sample, 8)
    extra = manifest(point["oltp"])
    both = assemble(facts_of((sample, {"oltp": extra["oltp"]})))
    for name in ("iops", "curves", "percentiles", "parts"):
        for before, after in zip(section(alone, name).blocks, section(both, name).blocks, strict=True):
            same = isinstance(before, FigureElement) and before.alternative == getattr(after, "alternative", None)
            assert before == after or same
    assert len(table(both, "points-table").rows) == len(table(alone, "points-table").rows)
    assert len(table(both, "oltp-points").rows) == 1


def test_a_run_that_only_loaded_is_a_report() -> None:
    fields = manifest(None)
    fields["oltp"] |= {"conditions": [], "actions_done": {"tpcc": ["load"]}}
    document = assemble(facts_of((OltpSample(1), fields)))
    assert items(document, "oltp-facts") == {
        "Loaded": "24,950,312 rows (4.936 GiB) at 190,460 rows/s, 2 min 11 s with indexes and writing to storage"
    }
    assert not any("No point" in text for text in notices(document))
    assert pages(document)[1].startswith(b"%PDF")


def test_a_run_cut_short_has_the_figures_of_its_last_point() -> None:
    sample, fields = run()
    fields["oltp"] = {"actions_done": {"tpcc": ["load"]}, "load": None}
    document = assemble(facts_of((sample, {**fields, "status": "interrupted"})))
    assert texts(section(document, "summary"))[2].startswith("30,898 new orders a minute")


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_no_text_of_a_server_is_ever_code(name: str) -> None:
    sample, fields = run()
    frame = facts_of((sample, fields), series=True).series
    oltp = fields["oltp"]
    oltp["statements"][0]["text"] = oltp["tables"][0]["table"] = name
    oltp["databases"][0] |= {"name": name, "version": name, "settings": {name: name, "fsync": name}}
    fields["target"]["databases"] = oltp["databases"]
    oltp["gaps"][0] |= {"reason": name, "database": name}
    oltp["errors"] = {"count": 1, "kinds": {name: 1}, "example": name}
    oltp["conditions"][0] |= {"title": name, "example": name, "database": name, "met": False, "violations": 1}
    oltp["storage"]["devices"][0] |= {"device": name, "roles": [name, "log"]}
    oltp["by_transaction"][name] = oltp["by_transaction"]["payment"]
    sample.points[0]["workload"] |= {"preset": name, "name": name, "mode": name, "isolation": name}
    facts = facts_of((sample, fields))
    text, pdf = pages(assemble(RunFacts(facts.manifest, facts.points, frame)))
    page = Page(text)
    assert page.outside == []
    assert not {"script", "img", "iframe", "object"} & page.tags
    assert len(page.ids) == len(set(page.ids))
    assert pdf.startswith(b"%PDF")
    assert "\x00" not in text
    assert "\u202e" not in text


@pytest.mark.usefixtures("unchecked_charts")
@pytest.mark.slow(reason="test_report_pages.py leaves out fields of points and manifests")
def test_a_result_that_lacks_a_field_is_still_a_report() -> None:
    sample, fields = run()
    whole = fields["oltp"]
    cut = [{**whole, missing: None} for missing in whole]
    for kind in ("statements", "tables", "conditions", "databases", "gaps"):
        cut += [{**whole, kind: [{**record, missing: None} for record in whole[kind]]} for missing in whole[kind][0]]
    cut += [{**whole, "storage": {**whole["storage"], missing: None}} for missing in whole["storage"]]
    by_transaction = whole["by_transaction"].items()
    cut += [
        {**whole, "by_transaction": {name: {**record, missing: None} for name, record in by_transaction}}
        for missing in whole["by_transaction"]["payment"]
    ]
    for found in cut:
        assemble(facts_of((sample, {**fields, "oltp": found})))
    for missing in sample.points[0]:
        cut_points = OltpSample(1)
        cut_points.points = [{**sample.points[0], missing: None}]
        assemble(facts_of((cut_points, fields)))
    assert all(pages(assemble(facts_of((sample, {**fields, "oltp": {}})))))


def test_the_sample_records_what_a_run_records() -> None:
    sample, _ = run()
    rows = sample.series()
    assert {row["source"] for row in rows} == {*TIERS, "tpcc"}
    assert min(row["t_ns"] for row in rows) > START_NS


def test_conditions_that_were_left_out_are_not_among_those_that_hold() -> None:
    checked: list[Condition] = [
        {"id": number, "title": "", "met": True, "violations": 0, "database": "d"} for number in range(1, 13)
    ]
    assert consistency_line(checked, TPCC)["meaning"] == "all 12 conditions hold"
    checked.pop(10)
    said = "11 of 12 conditions checked, all hold; no. 11 applies only after loading"
    assert consistency_line(checked, TPCC)["meaning"] == said

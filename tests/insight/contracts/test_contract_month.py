"""A recording's own contract this month: what is left of it, and that months are not read at each look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.apps.cli.history import contract_blocks, contracts_in
from assay.base.errors import UsageError
from assay.insight.contracts import this_month
from assay.insight.contracts.contract import contract_of
from assay.insight.contracts.judge import judge_recording
from assay.insight.contracts.this_month import CONTRACT_NAME, ClauseMonth, ContractMonth, contract_this_month
from assay.record.run_folder import RunFolder
from contract_recordings import BEGIN_NS, DAY, Minute, of, record

FAST, SLOW = of(30_000, 30), of(30_000, 3000)
DAYS = 2
CONTRACT = """
title = "Array 7"
[[latency]]
name = "reads"
most = "2ms"
allowed = "60%"
"""


def two_hours(number: int) -> Minute | None:
    """The recording has two hours of each day: a slow one and a fast one."""
    minute = number % 1440
    return (SLOW if minute < 240 else FAST) if 180 <= minute < 300 else None


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Days with a slow hour each, and the morning of a third; only read, but for its contract."""
    folder = tmp_path_factory.mktemp("days") / "rec"
    folder.mkdir()
    return record(folder, DAYS * 1440 + 360, two_hours)


NOW = BEGIN_NS + DAYS * DAY + DAY // 4


def told(folder: Path, contract: str = CONTRACT, now_ns: int = NOW) -> ContractMonth:
    (folder / CONTRACT_NAME).write_text(contract)
    return contract_this_month(folder, now_ns)


def clause(found: ContractMonth, name: str = "reads") -> ClauseMonth:
    assert found["why"] == ""
    return next(one for one in found["clauses"] if one["name"] == name)


def test_minutes_in_breach_are_those_that_the_judge_counts(recorded: Path) -> None:
    own = clause(told(recorded))
    judged = judge_recording(contract_of({"latency": [{"name": "reads", "most": "2ms", "allowed": "60%"}]}, "test"),
                             recorded).clauses[0].latency  # fmt: skip
    assert judged is not None
    assert own["breached_minutes"] == pytest.approx(judged.minutes.missed) == pytest.approx(180)
    assert own["counted_minutes"] == pytest.approx(judged.minutes.counted)
    assert own["left_minutes"] == pytest.approx(judged.left_minutes()) == pytest.approx(36)
    assert own["sentence"] == "reads: 3 h 0 min in breach, 36 min left"
    assert own["tone"] == "good"


def test_a_day_that_is_over_is_judged_once(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days: list[int] = []
    judge = this_month._judged_day

    def counted(*given: object) -> object:
        days.append((given[3] - BEGIN_NS) // DAY)  # type: ignore[operator]
        return judge(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(this_month, "_judged_day", counted)
    first = told(recorded)
    assert days == list(range(DAYS + 1))
    days.clear()
    assert told(recorded) == first
    assert days == [DAYS]
    days.clear()
    assert told(recorded, CONTRACT.replace("2ms", "20ms"))["clauses"][0]["breached_minutes"] == 0
    assert len(days) == DAYS + 1


def test_ios_of_a_month_are_judged_together(recorded: Path) -> None:
    monthly = CONTRACT + 'over = "month"\n'
    assert clause(told(recorded, monthly))["breached_minutes"] == clause(told(recorded, monthly))["counted_minutes"]
    loose = clause(told(recorded, monthly.replace('"2ms"', '"2ms"\nstatistic = "p50"')))
    assert loose["breached_minutes"] == 0
    over_all = clause(told(recorded, CONTRACT + 'over = "all"\n'))
    assert over_all["left_minutes"] is None
    assert this_month.WHOLE_TIME in over_all["sentence"]


@pytest.mark.parametrize(
    ("contract", "allowed", "tone"), [("60%", "36 min left", "good"), ("1%", "more than is allowed", "bad")]
)
def test_what_is_left_is_said_in_words(recorded: Path, contract: str, allowed: str, tone: str) -> None:
    own = clause(told(recorded, CONTRACT.replace("60%", contract)))
    assert own["sentence"].endswith(allowed)
    assert own["tone"] == tone


def test_time_of_another_month_is_not_counted(recorded: Path) -> None:
    assert told(recorded, now_ns=NOW + 40 * DAY)["why"] == "nothing was recorded this month"


@pytest.mark.parametrize(
    ("contract", "why"),
    [
        ("title = 1 = 2", CONTRACT_NAME),
        ('title = "a"', "promises nothing"),
        (CONTRACT.replace("2ms", "2"), "has no unit"),
        ("[loss]", "promises no latency"),
        (CONTRACT + '[storage]\nhost = "db9"', "db9"),
    ],
)
def test_a_contract_that_cannot_be_judged_is_unknown_and_says_why(recorded: Path, contract: str, why: str) -> None:
    found = told(recorded, contract)
    assert found["clauses"] == []
    assert why in found["why"]
    assert "\n" not in found["why"]


def test_no_link_and_no_pipe_is_read(recorded: Path, tmp_path: Path) -> None:
    (recorded / CONTRACT_NAME).unlink(missing_ok=True)
    (tmp_path / "elsewhere").write_text(CONTRACT)
    (recorded / CONTRACT_NAME).symlink_to(tmp_path / "elsewhere")
    assert "cannot be read" in contract_this_month(recorded, NOW)["why"]
    (recorded / CONTRACT_NAME).unlink()


def test_a_damaged_cache_is_worked_out_again(recorded: Path, tmp_path: Path) -> None:
    first = told(recorded)
    (kept,) = (tmp_path / "cache/assay").glob("contract-*.json")
    assert len(json.loads(kept.read_text())["days"]) == DAYS
    kept.write_text('{"form": 1')
    assert told(recorded) == first


def test_a_history_tells_of_the_contracts_in_its_folders(tmp_path: Path) -> None:
    with RunFolder.create_at(tmp_path / "rec", "record", {"recording": {}}):
        pass
    record(tmp_path / "rec", 20, lambda _: FAST)
    assert contracts_in([tmp_path], BEGIN_NS + DAY) == []
    (tmp_path / "rec" / CONTRACT_NAME).write_text(CONTRACT)
    (found,) = contracts_in([tmp_path], BEGIN_NS + DAY)
    assert found["clauses"][0]["sentence"] == "reads: 0 min in breach, 12 min left"
    assert len(list(contract_blocks([found]))) == 2
    assert contracts_in([tmp_path / "rec"], BEGIN_NS + DAY) == [found]
    (later,) = contracts_in([tmp_path], BEGIN_NS + 90 * DAY)
    assert later["why"] == "nothing was recorded this month"
    assert len(list(contract_blocks([later]))) == 1


def test_a_kept_contract_is_a_copy(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(CONTRACT)
    (tmp_path / "rec").mkdir()
    this_month.keep_contract(tmp_path / "a.toml", tmp_path / "rec")
    assert (tmp_path / "rec" / CONTRACT_NAME).read_text() == CONTRACT
    with pytest.raises(UsageError, match="cannot be read"):
        this_month.keep_contract(tmp_path / "none.toml", tmp_path / "rec")

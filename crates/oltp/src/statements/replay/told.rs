//! Findings of a replay besides its counts: each fingerprint's response times beside those of the log, statements that ended in another
//! way than in the log, and how late statements began.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::statements::kinds::COUNTED;
use crate::statements::known::Known;
use crate::statements::sketch::Sketch;

/// Equal parts of the log's time, whose means make the intervals of differences.
pub(super) const BATCHES: usize = 20;
/// Fingerprints that are told apart, of those that took most of the time.
const TOLD_MAX: usize = 200;
/// Pairs of outcomes that are told apart.
const DIFFERENT_MAX: usize = 200;

/// Statements of a part of the time: how many, their time as recorded and as replayed.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Batch {
    count: u64,
    recorded_ns: f64,
    replayed_ns: f64,
}

impl Batch {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.recorded_ns += other.recorded_ns;
        self.replayed_ns += other.replayed_ns;
    }
}

#[derive(Debug, Default, Clone)]
struct Compared {
    batches: [Batch; BATCHES],
    recorded: Sketch,
    replayed: Sketch,
    failed: u64,
}

/// A way in which statements ended differently than in the log; an empty code is success.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Outcomes {
    recorded: String,
    replayed: String,
}

#[derive(Debug, Clone)]
struct Different {
    count: u64,
    fingerprint: u32,
    example: String,
}

/// Findings of one thread of a replay.
#[derive(Debug, Default)]
pub(super) struct Told {
    compared: Vec<Option<Box<Compared>>>,
    different: BTreeMap<Outcomes, Different>,
    /// Failed in the log, and in the replay with the same code.
    pub(super) failed_alike: u64,
    /// Refused by a server whose sessions only read.
    pub(super) refused_writes: u64,
    pub(super) lateness: Sketch,
    /// Times of empty statements.
    pub(super) trips: Sketch,
    /// Statements whose session was still busy at their time.
    pub(super) held: u64,
    pub(super) done: u64,
    pub(super) sessions_done: u64,
    pub(super) sessions_lost: u64,
    pub(super) lost_example: Option<String>,
    /// Statements of sessions that could not connect, or whose connection was lost.
    pub(super) lost: u64,
}

impl Told {
    /// A statement ended well, in the log and in the replay.
    pub(super) fn compare(&mut self, fingerprint: u32, batch: usize, recorded_ns: Option<u64>, replayed_ns: u64) {
        let compared = self.of(fingerprint);
        compared.replayed.record(replayed_ns);
        if let Some(recorded_ns) = recorded_ns {
            compared.recorded.record(recorded_ns);
            let one = Batch { count: 1, recorded_ns: recorded_ns as f64, replayed_ns: replayed_ns as f64 };
            compared.batches[batch.min(BATCHES - 1)].add(one);
        }
    }

    fn of(&mut self, fingerprint: u32) -> &mut Compared {
        let place = fingerprint as usize;
        if place >= self.compared.len() {
            self.compared.resize_with(place + 1, || None);
        }
        self.compared[place].get_or_insert_default()
    }

    /// A statement ended in another way than in the log.
    pub(super) fn differs(&mut self, fingerprint: u32, recorded: &str, replayed: &str, text: &str) {
        if !replayed.is_empty() {
            self.of(fingerprint).failed += 1;
        }
        let key = Outcomes { recorded: recorded.into(), replayed: replayed.into() };
        if let Some(known) = self.different.get_mut(&key) {
            known.count += 1;
        } else if self.different.len() < DIFFERENT_MAX {
            self.different.insert(key, Different { count: 1, fingerprint, example: text.into() });
        }
    }

    /// Adds the findings of another thread.
    pub(super) fn merge(&mut self, other: &Self) {
        for (fingerprint, theirs) in (0_u32..).zip(&other.compared) {
            let Some(theirs) = theirs else { continue };
            let mine = self.of(fingerprint);
            mine.batches.iter_mut().zip(&theirs.batches).for_each(|(mine, theirs)| mine.add(*theirs));
            mine.recorded.merge(&theirs.recorded);
            mine.replayed.merge(&theirs.replayed);
            mine.failed += theirs.failed;
        }
        for (key, theirs) in &other.different {
            match self.different.get_mut(key) {
                Some(mine) => mine.count += theirs.count,
                None => drop(self.different.insert(key.clone(), theirs.clone())),
            }
        }
        self.lateness.merge(&other.lateness);
        self.trips.merge(&other.trips);
        self.failed_alike += other.failed_alike;
        self.refused_writes += other.refused_writes;
        self.held += other.held;
        self.done += other.done;
        self.sessions_done += other.sessions_done;
        self.sessions_lost += other.sessions_lost;
        self.lost += other.lost;
        if self.lost_example.is_none() {
            self.lost_example.clone_from(&other.lost_example);
        }
    }

    /// All of it for people and plans.
    pub(super) fn report(&self, known: &[Known]) -> Report {
        let mut statements: Vec<StatementReport> = known
            .iter()
            .zip(self.compared.iter().map(Option::as_deref).chain(std::iter::repeat(None)))
            .filter_map(|(known, compared)| Some(StatementReport::of(known, compared?)))
            .collect();
        statements
            .sort_by(|one, other| other.weight().total_cmp(&one.weight()).then_with(|| one.text.cmp(&other.text)));
        let kept = statements.len().min(TOLD_MAX);
        let statements_left_out = statements.len() - kept;
        statements.truncate(kept);
        let different = self.different.iter().map(|(outcomes, found)| DifferentReport {
            recorded: outcomes.recorded.clone(),
            replayed: outcomes.replayed.clone(),
            count: found.count,
            statement: known.get(found.fingerprint as usize).map(|known| known.text.clone()).unwrap_or_default(),
            example: found.example.clone(),
        });
        let late = &self.lateness;
        Report {
            done: self.done,
            failed_alike: self.failed_alike,
            refused_writes: self.refused_writes,
            different: different.collect(),
            lateness: Lateness {
                count: late.count(),
                p50_ns: late.quantile_ns(0.5),
                p99_ns: late.quantile_ns(0.99),
                max_ns: (late.count() > 0).then(|| late.max_ns()),
                held_count: self.held,
            },
            round_trip_ns: self.trips.mean_ns(),
            sessions_done: self.sessions_done,
            sessions_lost: self.sessions_lost,
            lost: self.lost,
            lost_example: self.lost_example.clone(),
            statements,
            statements_left_out,
        }
    }
}

/// Findings of a replay besides its counts.
#[derive(Debug, Serialize)]
pub struct Report {
    done: u64,
    failed_alike: u64,
    refused_writes: u64,
    different: Vec<DifferentReport>,
    lateness: Lateness,
    /// The way to the server and back, on average.
    round_trip_ns: Option<f64>,
    sessions_done: u64,
    sessions_lost: u64,
    lost: u64,
    lost_example: Option<String>,
    statements: Vec<StatementReport>,
    statements_left_out: usize,
}

#[derive(Debug, Serialize)]
struct Lateness {
    count: u64,
    p50_ns: Option<f64>,
    p99_ns: Option<f64>,
    max_ns: Option<u64>,
    held_count: u64,
}

#[derive(Debug, Serialize)]
struct DifferentReport {
    recorded: String,
    replayed: String,
    count: u64,
    statement: String,
    example: String,
}

#[derive(Debug, Serialize)]
struct Times {
    count: u64,
    mean: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: Option<u64>,
}

impl Times {
    fn of(sketch: &Sketch) -> Option<Self> {
        (sketch.count() > 0).then(|| Self {
            count: sketch.count(),
            mean: sketch.mean_ns(),
            p50: sketch.quantile_ns(0.5),
            p95: sketch.quantile_ns(0.95),
            p99: sketch.quantile_ns(0.99),
            max: Some(sketch.max_ns()),
        })
    }
}

/// Statements of one fingerprint that ended well in the log and in the replay.
#[derive(Debug, Serialize)]
struct StatementReport {
    text: String,
    kind: &'static str,
    /// In the log.
    count: u64,
    failed: u64,
    recorded_ns: Option<Times>,
    replayed_ns: Option<Times>,
    batches: Vec<Batch>,
}

impl StatementReport {
    fn of(known: &Known, compared: &Compared) -> Self {
        Self {
            text: known.text.clone(),
            kind: COUNTED[usize::from(known.counted)],
            count: known.count,
            failed: compared.failed,
            recorded_ns: Times::of(&compared.recorded),
            replayed_ns: Times::of(&compared.replayed),
            batches: compared.batches.iter().filter(|batch| batch.count > 0).copied().collect(),
        }
    }

    /// Time that its statements took, in the log or in the replay.
    fn weight(&self) -> f64 {
        let of =
            |times: &Option<Times>| times.as_ref().map_or(0.0, |times| times.mean.unwrap_or(0.0) * times.count as f64);
        of(&self.recorded_ns).max(of(&self.replayed_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up_and_the_heaviest_statement_comes_first() {
        let known: Vec<_> = ["others", "select a", "select b"]
            .map(|text| Known { text: text.into(), counted: 0, count: 9, recorded_ns: 0.0 })
            .into();
        let (mut one, mut other) = (Told::default(), Told::default());
        one.compare(1, 0, Some(100), 200);
        other.compare(1, 19, Some(100), 400);
        other.compare(2, 99, Some(10_000), 5000);
        other.compare(1, 3, None, 300);
        one.differs(1, "", "42P01", "no table");
        other.differs(2, "", "42P01", "no table either");
        other.differs(2, "23505", "", "");
        one.merge(&other);
        let report = one.report(&known);
        assert_eq!(report.statements.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), ["select b", "select a"]);
        let of_a = &report.statements[1];
        assert_eq!((of_a.batches.len(), of_a.failed), (2, 1));
        assert_eq!(of_a.recorded_ns.as_ref().unwrap().mean, Some(100.0));
        assert_eq!(of_a.replayed_ns.as_ref().unwrap().count, 3);
        let different: Vec<_> =
            report.different.iter().map(|one| (one.recorded.as_str(), one.replayed.as_str(), one.count)).collect();
        assert_eq!(different, [("", "42P01", 2), ("23505", "", 1)]);
    }
}

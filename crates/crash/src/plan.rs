//! Which states are tried, of all that are possible.

use std::collections::HashMap;

use crate::{Course, CrashError, Mask, Name, Order, Piece, random::Random};

/// A state that is to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its name.
    pub name: Name,
    /// The number of its contents: equal contents are tried once, at the point where clients were told the most.
    pub number: u128,
    /// How much clients had been told.
    pub marks: usize,
}

/// Tried states against all possible states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Crash points of the log.
    pub points: usize,
    /// Crash points with at least one state that is tried.
    pub points_tried: usize,
    /// Crash points of which every choice was considered.
    pub points_exhausted: usize,
    /// Most pieces outstanding at a crash point: two to the power of it states are possible there.
    pub pieces_max: usize,
    /// States that were considered.
    pub considered: usize,
    /// States left out because others have the same contents and at least as much to keep.
    pub equivalent: usize,
}

/// States in the order in which they are worth trying.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The states.
    pub states: Vec<Planned>,
    /// Their coverage.
    pub coverage: Coverage,
}

/// All choices are tried where there are as few pieces outstanding as this.
const FEW_PIECES: usize = 6;
/// Candidates in a row without new contents, after which the search for states ends.
const FRUITLESS: usize = 4000;

/// One crash point in this many is taken first because of its many outstanding writes.
const LARGE_SHARE: usize = 16;

struct Search<'a> {
    course: &'a mut Course,
    seed: u64,
    most: usize,
    plan: Plan,
    found: HashMap<u128, usize>,
    fruitless: usize,
    exhausted: Vec<bool>,
}

impl Plan {
    /// Chooses up to `most` states with different contents; the same for the same seed.
    ///
    /// A third of the states has nothing or all of the outstanding pieces, a third lacks a single piece or has one alone,
    /// a third is chosen at random. Crash points with many outstanding pieces come first, then those after which clients
    /// were told something.
    ///
    /// # Errors
    /// None today; the course reads no file.
    pub fn new(course: &mut Course, seed: u64, most: usize) -> Result<Self, CrashError> {
        let points = course.points().len();
        let mut search = Search {
            course,
            seed,
            most,
            plan: Self::default(),
            found: HashMap::new(),
            fruitless: 0,
            exhausted: vec![false; points],
        };
        search.run();
        let Search { mut plan, exhausted, .. } = search;
        let mut tried = vec![false; points];
        for state in &plan.states {
            tried[state.name.point] = true;
        }
        plan.coverage.points = points;
        plan.coverage.points_tried = tried.into_iter().filter(|tried| *tried).count();
        plan.coverage.points_exhausted = exhausted.into_iter().filter(|done| *done).count();
        plan.coverage.equivalent = plan.coverage.considered - plan.states.len();
        Ok(plan)
    }
}

impl Search<'_> {
    fn run(&mut self) {
        let weights = self.weights();
        let ranked = self.ranked(&weights);
        let first = ranked.len().min((self.most / 3).max(1));
        for point in in_order(&ranked[..first]) {
            self.consider_all(point, |_, _| vec![Mask::None, Mask::All]);
        }
        let left = self.most.saturating_sub(self.plan.states.len());
        for (point, each) in shared(&ranked, &weights, left / 2) {
            self.consider_all(point, |search, pieces| search.singles(point, pieces, each));
        }
        let mut number = 0_u32;
        while self.plan.states.len() < self.most && self.fruitless < FRUITLESS && number < u32::MAX / 2 {
            let left = self.most - self.plan.states.len();
            let before = self.plan.coverage.considered;
            let mut taken = 1;
            for (point, each) in shared(&ranked, &weights, left) {
                if !self.exhausted[point] {
                    let each = each.min(1000) as u32;
                    taken = taken.max(each);
                    self.consider_all(point, |search, pieces| search.random(pieces, number..number + each));
                }
            }
            number += taken;
            if self.plan.coverage.considered == before {
                break;
            }
        }
    }

    /// The share of states that each crash point gets: the square root of its pieces, as more of them allow more states.
    fn weights(&mut self) -> Vec<u64> {
        let pieces = (0..self.course.points().len()).map(|point| {
            self.course.go_to(point);
            self.course.pieces().len()
        });
        let pieces: Vec<usize> = pieces.collect();
        self.plan.coverage.pieces_max = pieces.iter().copied().max().unwrap_or(0);
        pieces.into_iter().map(|count| (count as u64).isqrt().max(1)).collect()
    }

    /// Crash points in the order in which they matter: those with the most outstanding writes, where checkpoints are,
    /// then those after which clients were told something.
    fn ranked(&self, weights: &[u64]) -> Vec<usize> {
        let points = self.course.points();
        let mut ranked: Vec<usize> = (0..points.len()).collect();
        Random::new(self.seed, &[0]).shuffle(&mut ranked);
        ranked.sort_by_key(|point| std::cmp::Reverse(weights[*point]));
        let large = points.len().div_ceil(LARGE_SHARE);
        ranked[large..].sort_by_key(|point| !points[*point].after_mark);
        ranked
    }

    fn consider_all(&mut self, point: usize, masks: impl FnOnce(&mut Self, &[Piece]) -> Vec<Mask>) {
        if self.plan.states.len() >= self.most {
            return;
        }
        self.course.go_to(point);
        let pieces = self.course.pieces();
        for mask in masks(self, &pieces) {
            if self.plan.states.len() >= self.most {
                return;
            }
            self.consider(Name { seed: self.seed, point, mask }, &pieces);
        }
    }

    fn consider(&mut self, name: Name, pieces: &[Piece]) {
        let Some(chosen) = name.chosen(pieces).filter(|chosen| self.course.allows(chosen)) else { return };
        let number = self.course.number(pieces, &chosen);
        let marks = self.course.points()[name.point].marks;
        self.plan.coverage.considered += 1;
        let planned = Planned { name, number, marks };
        match self.found.get(&number) {
            Some(&index) => {
                self.fruitless += 1;
                if self.plan.states[index].marks < marks {
                    self.plan.states[index] = planned;
                }
            }
            None => {
                self.fruitless = 0;
                self.found.insert(number, self.plan.states.len());
                self.plan.states.push(planned);
            }
        }
    }

    fn singles(&mut self, point: usize, pieces: &[Piece], each: usize) -> Vec<Mask> {
        let count = pieces.len();
        if self.course.promises().order == Order::Submitted {
            self.exhausted[point] = count <= each;
            let step = count.div_ceil(each).max(1);
            return (0..=count).step_by(step).map(|first| Mask::First(first as u32)).collect();
        }
        if count <= FEW_PIECES && 1 << count <= each.max(8) {
            self.exhausted[point] = true;
            let missing = |bits: usize| (0..count).filter(|piece| bits >> piece & 1 == 1).collect::<Vec<_>>();
            return (0..1 << count).map(|bits| Mask::missing(&missing(bits))).collect();
        }
        let mut order: Vec<u32> = (0..count as u32).collect();
        Random::new(self.seed, &[1, point as u64]).shuffle(&mut order);
        let both = |piece: &u32| [Mask::Missing(vec![*piece..=*piece]), Mask::Present(vec![*piece..=*piece])];
        order.iter().flat_map(both).take(each).collect()
    }

    fn random(&self, pieces: &[Piece], numbers: std::ops::Range<u32>) -> Vec<Mask> {
        if pieces.len() < 2 {
            return Vec::new();
        }
        if self.course.promises().order == Order::Submitted {
            let count = pieces.len() as u64 + 1;
            let of = |number| Mask::First(Random::new(self.seed, &[2, u64::from(number)]).below(count) as u32);
            return numbers.map(of).collect();
        }
        numbers.map(Mask::Random).collect()
    }
}

fn in_order(points: &[usize]) -> Vec<usize> {
    let mut points = points.to_vec();
    points.sort_unstable();
    points
}

/// States for each crash point, by weight; where there are fewer states than points, the first points get one each.
fn shared(ranked: &[usize], weights: &[u64], states: usize) -> Vec<(usize, usize)> {
    let total: u64 = weights.iter().sum();
    let mut left = states.max(1);
    let mut found = Vec::new();
    for &point in ranked {
        let each = (states as u64 * weights[point] / total.max(1)) as usize;
        let each = each.max(1).min(left);
        if each == 0 {
            break;
        }
        left -= each;
        found.push((point, each));
    }
    found.sort_unstable();
    found
}

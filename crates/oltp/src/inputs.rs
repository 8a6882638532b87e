//! Requests of users: which transaction, with what input, after how much keying and thinking.

use crate::{
    plan::RunPlan,
    random::Random,
    workload::{Transaction, Workload},
};

/// One user's stream of inputs.
pub(crate) struct Inputs<'a, W: Workload> {
    plan: &'a RunPlan,
    pub(crate) workload: &'a W,
    pub(crate) user: W::User,
    transactions: Vec<Transaction>,
    random: Random,
    /// For pauses, so that they do not change which inputs follow.
    pauses: Random,
    cards: Vec<usize>,
}

/// A transaction to run: its place among those of the workload, and its input.
pub(crate) struct Drawn<I> {
    pub(crate) transaction: usize,
    pub(crate) input: I,
}

impl<'a, W: Workload> Inputs<'a, W> {
    /// The stream of user `number` of a database, counted from 0.
    pub(crate) fn new(plan: &'a RunPlan, workload: &'a W, database: usize, number: u32) -> Self {
        let seed = plan.seed.wrapping_add((database as u64) << 40);
        Self {
            plan,
            workload,
            transactions: workload.transactions(),
            user: workload.user(database, plan.databases[database].scale, number),
            random: Random::of(seed, 200, number.into()),
            pauses: Random::of(seed, 201, number.into()),
            cards: Vec::with_capacity(if plan.deck { plan.mix.iter().sum::<u32>() as usize } else { 0 }),
        }
    }

    /// The next transaction and its input.
    pub(crate) fn next(&mut self) -> Drawn<W::Input> {
        let own = self.workload.choose(&mut self.user, &self.plan.mix);
        let transaction = own.unwrap_or_else(|| self.choose());
        Drawn { transaction, input: self.workload.draw(&mut self.user, transaction, &mut self.random) }
    }

    fn choose(&mut self) -> usize {
        let weights = &self.plan.mix;
        if !self.plan.deck {
            let mut drawn = self.random.between(0, weights.iter().sum::<u32>() - 1);
            for (transaction, weight) in weights.iter().enumerate() {
                match drawn.checked_sub(*weight) {
                    None => return transaction,
                    Some(left) => drawn = left,
                }
            }
        }
        if self.cards.is_empty() {
            for (transaction, weight) in weights.iter().enumerate() {
                self.cards.extend((0..*weight).map(|_| transaction));
            }
        }
        let place = self.random.between(0, self.cards.len() as u32 - 1);
        self.cards.swap_remove(place as usize)
    }

    /// Keying time before a transaction, in nanoseconds.
    pub(crate) fn keying_ns(&self, transaction: usize) -> u64 {
        (self.transactions[transaction].keying_s * self.plan.think_scale * 1e9) as u64
    }

    /// Thinking time after a transaction, in nanoseconds: negative exponential, cut at ten times its mean.
    pub(crate) fn thinking_ns(&mut self, transaction: usize) -> u64 {
        let times = (-self.random.share().ln()).min(10.0);
        (self.transactions[transaction].thinking_mean_s * times * self.plan.think_scale * 1e9) as u64
    }

    /// How many kinds of transactions there are.
    pub(crate) fn kinds(&self) -> usize {
        self.transactions.len()
    }

    pub(crate) fn thinks(&self) -> bool {
        self.plan.think_scale > 0.0
    }

    /// A pause before another attempt, up to some milliseconds and longer with each.
    pub(crate) fn pause_us(&mut self, attempt: u32) -> u64 {
        self.pauses.between(100, 500 << attempt.min(6)).into()
    }

    /// A share of a second for users not to begin or return all at once.
    pub(crate) fn share(&mut self) -> f64 {
        self.pauses.share()
    }
}

#[cfg(test)]
mod tests {
    use crate::{plan::RunPlan, tpcc::Tpcc};

    use super::Inputs;

    fn plan(mix: [u32; 5], deck: bool) -> RunPlan {
        let database = r#"{"name": "one", "warehouses": 3,
                           "connection": {"kind": "postgresql", "user": "tester", "database": "tpcc"}}"#;
        let text = format!(
            r#"{{"databases": [{database}], "users": 1, "load": {{"kind": "closed"}}, "mix": {mix:?}, "deck": {deck},
                 "think_scale": 1.0, "procedures": true, "pipeline": true, "isolation": "default", "retries": 0,
                 "reconnect_s": 1.0, "seed": 1, "interval_ns": 1000000000}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn workload() -> Tpcc {
        serde_json::from_str(r#"{"nurand_items": true, "home": "district"}"#).unwrap()
    }

    fn counts(inputs: &mut Inputs<'_, Tpcc>, draws: usize) -> [usize; 5] {
        let mut counts = [0; 5];
        (0..draws).for_each(|_| counts[inputs.next().transaction] += 1);
        counts
    }

    #[test]
    fn a_deck_gives_the_mix_exactly() {
        let (plan, workload) = (plan([45, 43, 4, 4, 4], true), workload());
        let mut inputs = Inputs::new(&plan, &workload, 0, 0);
        assert_eq!(counts(&mut inputs, 100), [45, 43, 4, 4, 4]);
        assert_eq!(counts(&mut inputs, 300), [135, 129, 12, 12, 12]);
    }

    #[test]
    fn independent_draws_give_it_on_average() {
        let (plan, workload) = (plan([10, 10, 1, 1, 1], false), workload());
        let drawn = counts(&mut Inputs::new(&plan, &workload, 0, 0), 230_000);
        for (count, weight) in drawn.iter().zip([10.0, 10.0, 1.0, 1.0, 1.0]) {
            assert!((*count as f64 / (weight * 1e4) - 1.0).abs() < 0.05, "{drawn:?}");
        }
    }

    #[test]
    fn thinking_is_exponential_with_its_mean() {
        let (plan, workload) = (plan([45, 43, 4, 4, 4], true), workload());
        let mut inputs = Inputs::new(&plan, &workload, 0, 3);
        let times: Vec<u64> = (0..100_000).map(|_| inputs.thinking_ns(0)).collect();
        let mean_s = times.iter().sum::<u64>() as f64 / 1e5 / 1e9;
        assert!((mean_s / 12.0 - 1.0).abs() < 0.02, "{mean_s}");
        assert!(times.iter().all(|time| *time <= 120_000_000_000));
        assert_eq!(inputs.keying_ns(0), 18_000_000_000);
    }
}

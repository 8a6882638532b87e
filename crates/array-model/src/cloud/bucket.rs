//! A token bucket: a baseline, a burst above it while there are credits, and the time in which it held I/Os back.

use super::plan::LimitPlan;

/// Tokens are counted in parts of this many, so that a nanosecond of any whole rate is exact.
const PARTS: i128 = 1_000_000_000;
/// The pace counts in picoseconds: rounding to nanoseconds would miss a rate over a long time.
const PS_PER_NS: u128 = 1000;

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    per_s: u64,
    burst_per_s: u64,
    /// How much may pass at once before the pace holds.
    window_ps: u128,
    capacity: i128,
    credits: i128,
    /// When `credits` was right.
    at_ns: u64,
    /// When all that has passed is through at the pace of the burst.
    paced_ps: u128,
    passed: u64,
    exceeded_ns: u64,
    /// Until when holding back has been counted.
    counted_ns: u64,
    /// When the last credit went: I/Os that wait take theirs before their time.
    used_up_ns: Option<u64>,
}

impl Bucket {
    pub(super) fn new(plan: &LimitPlan) -> Self {
        let capacity = i128::from(plan.credits) * PARTS;
        Self {
            // Whole tokens a second: times are exact then.
            per_s: plan.per_s as u64,
            burst_per_s: plan.burst_per_s.max(plan.per_s) as u64,
            window_ps: u128::from(plan.window_ns) * PS_PER_NS,
            capacity,
            credits: (capacity as f64 * plan.start_share) as i128,
            at_ns: 0,
            paced_ps: 0,
            passed: 0,
            exceeded_ns: 0,
            counted_ns: 0,
            used_up_ns: None,
        }
    }

    /// Whether more than the baseline passes while there are credits.
    fn bursts(&self) -> bool {
        self.burst_per_s > self.per_s
    }

    fn credits_at(&self, at_ns: u64) -> i128 {
        let earned = i128::from(at_ns.saturating_sub(self.at_ns)) * i128::from(self.per_s);
        (self.credits + earned).min(self.capacity)
    }

    /// The time at which a request for `cost` tokens may pass.
    #[inline]
    pub(super) fn earliest_ns(&self, now_ns: u64, cost: u64) -> u64 {
        // What counts with an I/O before it needs nothing of its own.
        if cost == 0 {
            return now_ns;
        }
        let paced_ns = (self.paced_ps.saturating_sub(self.window_ps)).div_ceil(PS_PER_NS) as u64;
        let at_ns = now_ns.max(paced_ns);
        if !self.bursts() {
            return at_ns;
        }
        // A bucket smaller than an I/O lets it pass when it is full.
        let needed = (i128::from(cost) * PARTS).min(self.capacity.max(PARTS));
        let missing = needed - self.credits_at(at_ns);
        if missing <= 0 { at_ns } else { at_ns + (missing as u128).div_ceil(u128::from(self.per_s)) as u64 }
    }

    /// Lets `cost` tokens pass at `at_ns`, which [`Self::earliest_ns`] told or a later time; they came at `now_ns`.
    #[inline]
    pub(super) fn pass(&mut self, now_ns: u64, at_ns: u64, cost: u64, held_back: bool) {
        if held_back {
            self.exceeded_ns += at_ns.saturating_sub(now_ns.max(self.counted_ns));
            self.counted_ns = self.counted_ns.max(at_ns);
        }
        self.passed += cost;
        let takes_ps = u128::from(cost) * 1_000_000_000_000 / u128::from(self.burst_per_s);
        self.paced_ps = self.paced_ps.max(u128::from(at_ns) * PS_PER_NS) + takes_ps;
        if self.bursts() {
            self.credits = self.credits_at(at_ns) - i128::from(cost) * PARTS;
            self.at_ns = at_ns.max(self.at_ns);
            if self.credits < PARTS {
                self.used_up_ns.get_or_insert(self.at_ns);
            }
        }
    }

    /// Share of the credits that is left; none where nothing bursts.
    pub(super) fn balance(&self, now_ns: u64) -> Option<f64> {
        let full = self.capacity.max(1) as f64;
        self.bursts().then(|| (self.credits_at(now_ns) as f64 / full).clamp(0.0, 1.0))
    }

    /// The baseline, if the last credit went since this was asked last.
    pub(super) fn take_used_up(&mut self, now_ns: u64) -> Option<u64> {
        self.used_up_ns.take_if(|at_ns| *at_ns <= now_ns).map(|_| self.per_s)
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// How long more was asked for than may pass, until `now_ns`.
    pub(super) fn exceeded_ns(&self, now_ns: u64) -> u64 {
        self.exceeded_ns - self.counted_ns.saturating_sub(now_ns).min(self.exceeded_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn limit(per_s: u64, burst_per_s: u64, credits: u64) -> LimitPlan {
        LimitPlan { per_s: per_s as f64, burst_per_s: burst_per_s as f64, credits, start_share: 1.0, window_ns: 0 }
    }

    /// Asks for `cost` tokens again as soon as the last ones passed; says when the last pass before `until_ns` was.
    fn ask(bucket: &mut Bucket, from_ns: u64, until_ns: u64, cost: u64, mut each: impl FnMut(u64)) {
        let mut now_ns = from_ns;
        loop {
            let at_ns = bucket.earliest_ns(now_ns, cost);
            if at_ns >= until_ns {
                return;
            }
            bucket.pass(now_ns, at_ns, cost, at_ns > now_ns);
            each(at_ns);
            now_ns = at_ns;
        }
    }

    #[test]
    fn a_volume_of_100_gib_of_gp2_bursts_for_2000_s_as_its_provider_says() {
        let mut bucket = Bucket::new(&limit(300, 3000, 5_400_000));
        let (mut last_ns, mut slow_from_ns) = (0, None);
        ask(&mut bucket, 0, 2100 * SECOND, 1, |at_ns| {
            if at_ns - last_ns > SECOND / 2000 && slow_from_ns.is_none() {
                slow_from_ns = Some(last_ns);
            }
            last_ns = at_ns;
        });
        let ended_s = slow_from_ns.unwrap() as f64 / SECOND as f64;
        assert!((ended_s - 2000.0).abs() < 0.01, "{ended_s}");
        // Full again after 18,000 s without I/O.
        assert!(bucket.balance(2100 * SECOND + 17_990 * SECOND).unwrap() < 1.0);
        assert_eq!(bucket.balance(2100 * SECOND + 18_001 * SECOND), Some(1.0));
    }

    #[test]
    fn a_limit_without_burst_is_met_to_the_last_io_at_rates_that_divide_no_second() {
        let mut bucket = Bucket::new(&limit(3000, 3000, 0));
        let mut passed = 0;
        ask(&mut bucket, 0, 100 * SECOND, 1, |_| passed += 1);
        assert_eq!(passed, 300_000);
        assert_eq!(bucket.balance(0), None);
        assert!(bucket.exceeded_ns(100 * SECOND) > 99 * SECOND);
    }

    #[test]
    fn what_comes_below_the_limit_is_not_held_back() {
        let mut bucket = Bucket::new(&limit(1000, 1000, 0));
        for number in 0..1000_u64 {
            let now_ns = number * 2_000_000;
            assert_eq!(bucket.earliest_ns(now_ns, 1), now_ns);
            bucket.pass(now_ns, now_ns, 1, false);
        }
        assert_eq!(bucket.exceeded_ns(2 * SECOND), 0);
    }

    proptest! {
        /// No more passes in any time than credits and baseline give, and no less while more is asked for.
        #[test]
        fn a_bucket_gives_its_credits_and_its_baseline_and_nothing_else(
            per_s in 1_u64..5000, above in 1_u64..20_000, credits in 1_u64..100_000, cost in 1_u64..8, seconds in 1_u64..30,
        ) {
            let burst_per_s = per_s + above;
            let mut bucket = Bucket::new(&limit(per_s, burst_per_s, credits));
            let mut passed = 0;
            ask(&mut bucket, 0, seconds * SECOND, cost, |_| passed += cost);
            let given = (credits + per_s * seconds).min(burst_per_s * seconds);
            prop_assert!(passed <= given + cost, "{passed} of {given}");
            prop_assert!(passed + 2 * cost >= given, "{passed} of {given}");
            // The burst ends after credits / (burst - baseline), as providers say.
            let burst_s = credits as f64 / above as f64;
            if burst_s + 1.0 < seconds as f64 {
                prop_assert!(bucket.balance(seconds * SECOND).unwrap() * credits as f64 <= (cost + 1) as f64);
            }
        }
    }
}

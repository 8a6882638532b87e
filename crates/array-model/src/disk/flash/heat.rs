//! Heat: a drive that moves more than its cooling bears works more slowly until it has cooled down.

use crate::HeatPlan;

/// Bytes moved beyond what cooling bears, as a bucket that leaks. When the bucket is full the interface is slowed to a share
/// of its rate, until it is half empty: one step, where firmware has several.
#[derive(Debug, Clone)]
pub(super) struct Heat {
    most_bytes: f64,
    cooled_per_ns: f64,
    times: u64,
    bytes: f64,
    at_ns: u64,
    slowed: bool,
    throttled_ns: u64,
}

impl Heat {
    pub(super) fn new(plan: &HeatPlan) -> Self {
        Self {
            most_bytes: plan.bytes as f64,
            cooled_per_ns: plan.cooling_bytes_per_s / 1e9,
            times: (1.0 / plan.throttled_share.clamp(0.001, 1.0)).round() as u64,
            bytes: 0.0,
            at_ns: 0,
            slowed: false,
            throttled_ns: 0,
        }
    }

    /// Time until `now_ns` in which the drive was slowed down; none of a drive that never is.
    pub(super) fn throttled_ns(&self, now_ns: u64) -> Option<u64> {
        (self.most_bytes > 0.0).then(|| self.throttled_ns + self.slowed_ns(now_ns.saturating_sub(self.at_ns)))
    }

    /// Time of the last `passed_ns` until the drive had cooled down.
    fn slowed_ns(&self, passed_ns: u64) -> u64 {
        let cools_in_ns = (self.bytes - self.most_bytes / 2.0).max(0.0) / self.cooled_per_ns;
        if self.slowed { (passed_ns as f64).min(cools_in_ns) as u64 } else { 0 }
    }

    /// Picoseconds for each of these bytes; they heat the drive.
    #[inline]
    pub(super) fn slowed(&mut self, now_ns: u64, bytes: u64, ps_per_byte: u64) -> u64 {
        if self.most_bytes == 0.0 {
            return ps_per_byte;
        }
        let passed_ns = now_ns.saturating_sub(self.at_ns);
        self.throttled_ns += self.slowed_ns(passed_ns);
        self.at_ns = self.at_ns.max(now_ns);
        self.bytes = (self.bytes - passed_ns as f64 * self.cooled_per_ns).max(0.0) + bytes as f64;
        self.slowed = self.bytes > if self.slowed { self.most_bytes / 2.0 } else { self.most_bytes };
        if self.slowed { ps_per_byte * self.times } else { ps_per_byte }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_slows_down_when_it_is_hot_and_recovers_when_it_has_cooled() {
        let plan = HeatPlan { bytes: 1000, cooling_bytes_per_s: 1e9, throttled_share: 0.25 };
        let mut heat = Heat::new(&plan);
        // Twice as much as is cooled: the bucket is full after 1000 bytes too many.
        let slowed_at = (0..40).find(|step| heat.slowed(step * 100, 200, 8) == 32);
        assert_eq!(slowed_at, Some(9));
        assert_eq!(heat.slowed(1300, 0, 8), 32, "still hot");
        // Slowed down since 900 ns; 900 bytes are left at 1300 ns, and half of 1000 at 1500 ns.
        assert_eq!((heat.throttled_ns(1400), heat.throttled_ns(9999)), (Some(500), Some(600)));
        assert_eq!(heat.slowed(2000, 0, 8), 8);
        assert_eq!(heat.throttled_ns(3000), Some(600));
        assert_eq!(Heat::new(&HeatPlan { bytes: 0, ..plan }).slowed(0, 1 << 40, 8), 8, "0 is no limit");
    }
}

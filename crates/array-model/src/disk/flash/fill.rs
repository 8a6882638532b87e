//! Flash as uniform random writes leave it, without writing.

/// Write amplification of uniform random writes to a whole drive with the share `s` of flash beyond its capacity: `a / (a + W(-a exp(-a)))` with `a = 1 + s` and the principal branch of Lambert's W (P. Desnoyers,
/// "Analytic Models of SSD Write Performance", ACM Transactions on Storage 10(2), 2014).
pub(super) fn write_amplification(over_provisioning: f64) -> f64 {
    let alpha = 1.0 + over_provisioning;
    alpha / (alpha + lambert_w(-alpha * libm::exp(-alpha)))
}

/// The principal branch of Lambert's W for -1/e < x < 0, by Halley's steps.
fn lambert_w(x: f64) -> f64 {
    // Near the branch point the series in p, elsewhere the first terms of that at 0.
    let p = (2.0 * (std::f64::consts::E * x + 1.0)).max(0.0).sqrt();
    let mut w = -1.0 + p - p * p / 3.0 + 11.0 / 72.0 * p * p * p;
    for _ in 0..20 {
        let e = libm::exp(w);
        let f = w * e - x;
        let step = f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0));
        if !step.is_finite() || step.abs() < 1e-15 {
            break;
        }
        w -= step;
    }
    w
}

/// Valid units of each of so many blocks, from the next to be collected to the newest, `mapped` in all: the share falls with the
/// age of a block as `vg exp(x ln(1 / vg))`, where `vg` of the units that are collected are valid.
pub(super) fn valid_counts(blocks: u32, block_units: u32, mapped: u32) -> Vec<u32> {
    let share = f64::from(blocks * block_units) / f64::from(mapped.max(1)) - 1.0;
    let least = (1.0 - 1.0 / write_amplification(share.max(1e-6))).clamp(1e-9, 1.0);
    let shares: Vec<f64> = (0..blocks)
        .map(|block| least * libm::exp((f64::from(block) + 0.5) / f64::from(blocks) * libm::log(1.0 / least)))
        .collect();
    let scale = f64::from(mapped) / shares.iter().sum::<f64>();
    // Rounded so that the sum stays exact; what a full block cannot take goes to the next.
    let (mut due, mut given) = (0.0, 0_u32);
    let mut counts: Vec<u32> = shares
        .iter()
        .map(|share| {
            due += share * scale;
            let count = (due.round() as u32).saturating_sub(given).min(block_units);
            given += count;
            count
        })
        .collect();
    for count in counts.iter_mut().rev() {
        let more = (mapped - given).min(block_units - *count);
        *count += more;
        given += more;
    }
    counts
}

/// The numbers below `count` in an order that says nothing.
pub(super) fn shuffled(count: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count).collect();
    let mut draws = Draws::new(1);
    for last in (1..count).rev() {
        numbers.swap(last as usize, draws.below(last + 1) as usize);
    }
    numbers
}

/// Random numbers (splitmix64).
#[derive(Debug, Clone)]
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((((mixed ^ (mixed >> 31)) >> 32) * u64::from(end)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_is_that_of_the_simulated_collector() {
        // Greedy collection of 4096 blocks of 256 units, uniform writes: 7.71, 3.99, 2.47, 1.71.
        for (share, simulated) in [(0.07, 7.71), (0.15, 3.99), (0.28, 2.47), (0.5, 1.71)] {
            let found = write_amplification(share);
            assert!((found / simulated - 1.0).abs() < 0.015, "{share}: {found}");
        }
        assert!(write_amplification(0.001) > 300.0 && write_amplification(10.0) < 1.001);
    }

    #[test]
    fn counts_add_up_and_fall_with_age() {
        for (blocks, units, mapped) in [(4096, 64, 244_000), (16, 2, 31), (16, 2, 32), (100, 8, 1), (50, 8, 0)] {
            let counts = valid_counts(blocks, units, mapped);
            assert_eq!(counts.iter().sum::<u32>(), mapped);
            assert!(counts.iter().all(|count| *count <= units));
            let (old, new) = counts.split_at(counts.len() / 2);
            assert!(old.iter().sum::<u32>() <= new.iter().sum::<u32>());
        }
    }
}

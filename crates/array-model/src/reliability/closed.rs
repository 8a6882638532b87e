//! Closed forms: the first order of what can happen, right while rebuilds are short against the time between failures.

use serde::{Deserialize, Serialize};

use super::group::Group;

/// Mean time to data loss, and figures computed from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Closed {
    /// Mean time to data loss of one group, hours.
    pub group_mttdl_h: f64,
    /// Mean time until the first of all groups loses data, hours.
    pub mttdl_h: f64,
    /// Probability that any group loses data in the service life.
    pub loss_probability: f64,
}

impl Closed {
    pub(super) fn of(group: &Group, service_h: f64) -> Self {
        let group_mttdl_h = 1.0 / loss_rate(group);
        let mttdl_h = group_mttdl_h / f64::from(group.groups);
        Self { group_mttdl_h, mttdl_h, loss_probability: loss_probability(mttdl_h, service_h) }
    }
}

/// `1 - exp(-T / MTTDL)`: the time to a rare loss is as good as exponential.
pub(super) fn loss_probability(mttdl_h: f64, service_h: f64) -> f64 {
    -libm::expm1(-service_h / mttdl_h)
}

/// Losses of one group per hour.
///
/// With `n` disks, failure rate `l`, rebuild `t` and unreadable data `U(k)` on `k` disks: `n l` without redundancy;
/// `n l [(n-1) l t + U(n-1)]` if one lost disk is survived (D. A. Patterson, G. Gibson, R. H. Katz, "A Case for
/// Redundant Arrays of Inexpensive Disks", SIGMOD 1988, with the unreadable data added);
/// `n l (n-1) l t [(n-2) l t + U(n-2)]` if two are (P. Corbett et al., "Row-Diagonal Parity for Double Disk Failure
/// Correction", FAST 2004).
fn loss_rate(group: &Group) -> f64 {
    let disks = f64::from(group.disks);
    let within_rebuild = group.failure_rate * group.rebuild_h;
    let mut rate = disks * group.failure_rate;
    for lost in 1..=group.tolerates {
        let next = (disks - f64::from(lost)) * within_rebuild;
        rate *= if lost == group.tolerates { next + group.unreadable } else { next };
    }
    rate
}

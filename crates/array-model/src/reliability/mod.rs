//! How long data last: mean time to data loss and probability of loss, by closed forms and by simulation.
//!
//! A group is the smallest set of disks that loses data by itself: a mirrored pair, a parity set, or all disks without
//! redundancy. Disks fail at a constant rate, independently; all lost disks of a group are rebuilt in one pass, which
//! begins again when another one fails; with no redundancy left, data that cannot be read are lost.

mod ageing;
mod closed;
mod group;
mod inputs;
mod simulate;

use serde::{Deserialize, Serialize};

use crate::ArrayError;
use crate::RaidPolicy;

pub use ageing::{Aged, Ageing};
pub use closed::Closed;
pub use group::Layout;
pub use inputs::{Inputs, RebuildTime, Unreadable};
pub use simulate::Simulated;

/// A request: layouts to assess.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub inputs: Inputs,
    pub layouts: Vec<Layout>,
    /// Cycles simulated for each layout, at least 1,000; 0: closed forms only.
    pub trials: u32,
    pub seed: u64,
    /// Distributions for a failure rate that changes with age.
    #[serde(default)]
    pub ageing: Option<Ageing>,
}

/// Assessments of the layouts, in the order of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub layouts: Vec<Assessment>,
}

/// Assessment of one layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    pub policy: RaidPolicy,
    pub groups: u32,
    pub group_disks: u32,
    /// Lost disks a group survives.
    pub tolerates: u32,
    /// Disks' worth of data in all groups together.
    pub data_disks: u32,
    /// Probability that something cannot be read when no redundancy is left.
    pub unreadable: f64,
    pub closed: Closed,
    pub simulated: Option<Simulated>,
    pub aged: Option<Aged>,
}

/// Assesses every layout.
///
/// # Errors
/// An input has a value that no disk has, or the disks cannot carry a policy.
pub fn assess(request: &Request) -> Result<Outcome, ArrayError> {
    let inputs = &request.inputs;
    inputs.validate()?;
    if (1..MIN_TRIALS).contains(&request.trials) || (request.trials == 0 && request.ageing.is_some()) {
        let message = format!("{} is fewer than {MIN_TRIALS}, no interval can be given", request.trials);
        return Err(ArrayError::invalid("trials", message));
    }
    if let Some(ageing) = &request.ageing {
        ageing.validate()?;
    }
    let assess_layout = |(index, layout): (usize, &Layout)| {
        let group = layout.group(inputs)?;
        // Every layout draws from a stream of its own: more layouts change none of the others.
        let seed = request.seed.wrapping_add((index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let closed = Closed::of(&group, inputs.service_h);
        let simulated = simulate::simulate(&group, &closed, inputs.service_h, request.trials, seed);
        if request.ageing.is_some() {
            Ageing::check_work(&group, inputs.service_h, request.trials)?;
        }
        let aged =
            request.ageing.as_ref().map(|ageing| ageing.simulate(&group, inputs.service_h, request.trials, seed));
        Ok(Assessment {
            policy: layout.policy,
            groups: group.groups,
            group_disks: group.disks,
            tolerates: group.tolerates,
            data_disks: group.data_disks,
            unreadable: group.unreadable,
            closed,
            simulated,
            aged,
        })
    };
    Ok(Outcome { layouts: request.layouts.iter().enumerate().map(assess_layout).collect::<Result<_, _>>()? })
}

/// Fewest trials whose mean is as good as normally distributed.
const MIN_TRIALS: u32 = 1000;

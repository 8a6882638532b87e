//! How the group of an array may grow, and what keeps it from doing so.

use assay_array_model::ArrayPlan;

use crate::stall::Stall;

pub(crate) struct Growing {
    pub(crate) array: ArrayPlan,
    /// Pieces that move at the same time.
    pub(crate) depth: u32,
    /// Most members of a group of this array.
    pub(crate) members_most: u32,
    /// Whether pieces that the model has moved are not copied yet.
    pub(crate) is_behind: bool,
    /// A piece that cannot be copied now may be so later: when chunks that were lost are written again, or there is room.
    pub(crate) stall: Stall,
}

impl Growing {
    pub(crate) fn new(array: &ArrayPlan, depth: u32, members_most: u32) -> Self {
        Self { array: array.clone(), depth, members_most, is_behind: false, stall: Stall::default() }
    }
}
